"""Read failures and the pauses after them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import structlog
from sqlalchemy.exc import DBAPIError

from tocsin.errors import Broken, CredentialsRefused, Refused, TocsinError, TryLater
from tocsin.incidents.coverage import ReadFailure, StreamKey
from tocsin.store import LeaseLost

SUPERSEDED = "superseded"
_BUG = "failed"
_log = structlog.get_logger()


def classify_failure(error: BaseException) -> ReadFailure:
    """Return the outcome and the reason of a read that this error stopped."""
    words = str(getattr(error, "orig", None) or error)
    reason = words if isinstance(error, TocsinError) else f"{type(error).__name__}: {words}"
    return ReadFailure(_choose_outcome(error), reason)


def _choose_outcome(error: BaseException) -> str:
    match error:
        case TryLater() | OSError() | DBAPIError():  # the latter two: something of ours is away
            return "later"
        case Broken():
            return "broken"
        case CredentialsRefused():
            return "credentials-refused"
        case Refused():
            return "refused"
        case LeaseLost():
            return SUPERSEDED
        case _:
            return _BUG


def log_failure(key: StreamKey, failure: ReadFailure, error: BaseException) -> None:
    """Log that a stream could not be read; with the traceback where that is somebody's bug."""
    _log.warning(
        "a stream could not be read",
        provider=key.provider,
        stream=key.stream,
        outcome=failure.outcome,
        reason=failure.reason,
        exc_info=error if failure.outcome == _BUG else None,
    )


LONGEST_PAUSE = timedelta(minutes=15)
MAX_MISSED_POLLS = 20
"""A provider that keeps failing is asked again after so many of its polls, or the pause above."""
FIRST_AFTER_REFUSED = timedelta(minutes=1)
LONGEST_AFTER_REFUSED = timedelta(hours=1)
"""Credentials that are refused again and again lock accounts out."""
_MOST_DOUBLINGS = 16


def compute_pause(
    errors: Sequence[BaseException], failures: int, poll: timedelta, *, jitter: float = 0.0
) -> timedelta:
    """Return the pause after a round that met these errors, the `failures`-th in a row.

    It doubles with each failure up to a bound, is never shorter than the far side asked for nor
    than a poll, and grows by a share of up to a quarter with a `jitter` from 0 to 1, so that not
    all come back at once.
    """
    if not errors:
        return poll
    first, longest = poll, max(poll, min(poll * MAX_MISSED_POLLS, LONGEST_PAUSE))
    if any(isinstance(error, CredentialsRefused) for error in errors):
        first, longest = max(poll, FIRST_AFTER_REFUSED), max(poll, LONGEST_AFTER_REFUSED)
    asked = [error.after for error in errors if isinstance(error, TryLater) and error.after]
    doubled: timedelta = min(first * 2 ** min(failures, _MOST_DOUBLINGS), longest)
    return max(doubled * (1 + jitter / 4), *asked, poll)

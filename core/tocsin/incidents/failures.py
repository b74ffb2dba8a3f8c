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
    """Return the outcome and the reason of a read that failed with this error."""
    message = str(getattr(error, "orig", None) or error)
    reason = message if isinstance(error, TocsinError) else f"{type(error).__name__}: {message}"
    return ReadFailure(_choose_outcome(error), reason)


def _choose_outcome(error: BaseException) -> str:
    match error:
        case (
            TryLater() | OSError() | DBAPIError()
        ):  # the latter two: the network or the database is unavailable
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
    """Log a failed read, with the traceback where the error is a bug."""
    _log.warning(
        "stream not read",
        provider=key.provider,
        stream=key.stream,
        outcome=failure.outcome,
        reason=failure.reason,
        exc_info=error if failure.outcome == _BUG else None,
    )


LONGEST_PAUSE = timedelta(minutes=15)
MAX_MISSED_POLLS = 20
"""The longest pause of a failing provider, in polls, unless the duration above is shorter."""
FIRST_AFTER_REFUSED = timedelta(minutes=1)
LONGEST_AFTER_REFUSED = timedelta(hours=1)
"""Repeated refusals of credentials lock accounts out."""
_MOST_DOUBLINGS = 16


def compute_pause(
    errors: Sequence[BaseException], failures: int, poll: timedelta, *, jitter: float = 0.0
) -> timedelta:
    """Return the pause after a round with these errors, the `failures`-th consecutive failure.

    The pause doubles with each failure up to a limit, is never shorter than the poll interval or
    the delay that the SIEM asked for, and grows by up to a quarter with a `jitter` from 0 to 1, so
    that providers do not all return at once.
    """
    if not errors:
        return poll
    first, longest = poll, max(poll, min(poll * MAX_MISSED_POLLS, LONGEST_PAUSE))
    if any(isinstance(error, CredentialsRefused) for error in errors):
        first, longest = max(poll, FIRST_AFTER_REFUSED), max(poll, LONGEST_AFTER_REFUSED)
    asked = [error.after for error in errors if isinstance(error, TryLater) and error.after]
    doubled: timedelta = min(first * 2 ** min(failures, _MOST_DOUBLINGS), longest)
    return max(doubled * (1 + jitter / 4), *asked, poll)

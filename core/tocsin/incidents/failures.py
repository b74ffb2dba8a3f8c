"""Read failures: their outcome, reason and log message."""

from __future__ import annotations

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
    """Log a failed read, with the traceback if the error is a bug."""
    _log.warning(
        "stream not read",
        provider=key.provider,
        stream=key.stream,
        outcome=failure.outcome,
        reason=failure.reason,
        exc_info=error if failure.outcome == _BUG else None,
    )

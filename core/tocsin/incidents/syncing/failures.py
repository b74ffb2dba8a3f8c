"""What stopped a read, in the ledger's words and in the log's."""

from __future__ import annotations

import structlog
from sqlalchemy.exc import DBAPIError

from tocsin.errors import Broken, CredentialsRefused, Refused, TocsinError, TryLater
from tocsin.incidents.coverage.ledger import ReadFailure
from tocsin.incidents.coverage.positions import ReaderSuperseded, StreamKey

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
        case ReaderSuperseded():
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

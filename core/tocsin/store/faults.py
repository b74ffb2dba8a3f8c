"""Faults of the database: their classes, and what an operator can do about each."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from enum import StrEnum

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from tocsin.errors import OperatorError, TocsinError


class DatabaseFault(StrEnum):
    """Kind of failure that the database causes, rather than a wrong statement."""

    UNREACHABLE = "unreachable"
    TIMED_OUT = "timed-out"
    READ_ONLY = "read-only"
    FULL = "full"
    IO_ERROR = "io-error"
    DAMAGED = "damaged"
    REPLACED = "replaced"
    SCHEMA = "schema"

    @property
    def summary(self) -> str:
        """The fault as a clause, for logs and messages."""
        return _FAULTS[self][0]

    @property
    def advice(self) -> str:
        """What an operator can do about it."""
        return _FAULTS[self][1]


_FAULTS: Mapping[DatabaseFault, tuple[str, str]] = {
    DatabaseFault.UNREACHABLE: (
        "database unreachable",
        "check the server, TOCSIN_DATABASE_URL and TOCSIN_DATA_DIR",
    ),
    DatabaseFault.TIMED_OUT: (
        "database timed out",
        "look for long transactions and locks held by other programs",
    ),
    DatabaseFault.READ_ONLY: (
        "database read-only",
        "connect to the primary server, or make the file and its directory writable",
    ),
    DatabaseFault.FULL: ("database disk full", "free up disk space"),
    DatabaseFault.IO_ERROR: (
        "database disk could not be read or written",
        "check the disk and its file system",
    ),
    DatabaseFault.DAMAGED: (
        "database damaged",
        "restore a backup, or set TOCSIN_DATABASE_URL to another database",
    ),
    DatabaseFault.REPLACED: (
        "database removed or replaced while in use",
        "restore the original database, or restart the node to begin a new epoch",
    ),
    DatabaseFault.SCHEMA: (
        "database schema changed",
        "run the version of Tocsin that matches the schema, or `tocsin db upgrade`",
    ),
}

# Appendix A of PostgreSQL's manual; a code of five characters takes precedence over its class
_STATES: Mapping[str, DatabaseFault] = {
    "08": DatabaseFault.UNREACHABLE,
    "28": DatabaseFault.UNREACHABLE,  # invalid_authorization_specification
    "3D": DatabaseFault.UNREACHABLE,  # invalid_catalog_name
    "53": DatabaseFault.UNREACHABLE,
    "57P": DatabaseFault.UNREACHABLE,
    "57014": DatabaseFault.TIMED_OUT,  # query_canceled, by statement_timeout
    "55P03": DatabaseFault.TIMED_OUT,  # lock_not_available
    "25P03": DatabaseFault.TIMED_OUT,  # idle_in_transaction_session_timeout
    "57P05": DatabaseFault.TIMED_OUT,  # idle_session_timeout
    "40001": DatabaseFault.TIMED_OUT,  # serialization_failure, after its repetitions
    "40P01": DatabaseFault.TIMED_OUT,  # deadlock_detected, likewise
    "25006": DatabaseFault.READ_ONLY,
    "53100": DatabaseFault.FULL,
    "58030": DatabaseFault.IO_ERROR,
    "58P01": DatabaseFault.DAMAGED,  # undefined_file
    "XX001": DatabaseFault.DAMAGED,  # data_corrupted
    "XX002": DatabaseFault.DAMAGED,  # index_corrupted
}
_CODES: Mapping[int, DatabaseFault] = {
    sqlite3.SQLITE_CANTOPEN: DatabaseFault.UNREACHABLE,
    sqlite3.SQLITE_BUSY: DatabaseFault.TIMED_OUT,
    sqlite3.SQLITE_LOCKED: DatabaseFault.TIMED_OUT,
    sqlite3.SQLITE_READONLY: DatabaseFault.READ_ONLY,
    sqlite3.SQLITE_FULL: DatabaseFault.FULL,
    sqlite3.SQLITE_IOERR: DatabaseFault.IO_ERROR,
    sqlite3.SQLITE_IOERR_SHMSIZE: DatabaseFault.FULL,  # no room for the index of the log
    sqlite3.SQLITE_CORRUPT: DatabaseFault.DAMAGED,
    sqlite3.SQLITE_NOTADB: DatabaseFault.DAMAGED,
}


class DatabaseFailure(TocsinError, OSError):  # noqa: N818 - a state, not a mistake
    """The database failed outside a statement: no connection, no answer, or another file."""

    def __init__(self, reason: str, fault: DatabaseFault) -> None:
        super().__init__(reason)
        self.fault = fault


class DatabaseReplaced(DatabaseFailure):
    """The database is no longer the one that was opened: it was rolled back or replaced."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason, DatabaseFault.REPLACED)


class UnusableDatabaseError(OperatorError):
    """The database cannot be used; the message says why and what to do about it."""

    exit_status = 3

    def __init__(self, reason: str, fault: DatabaseFault) -> None:
        super().__init__(f"{fault.summary}: {reason}; {fault.advice}")
        self.fault = fault


def find_fault(error: BaseException) -> DatabaseFault | None:
    """Return the database fault that caused the error, None if there is none."""
    match error:
        case DatabaseFailure() | UnusableDatabaseError():
            return error.fault
        case PoolTimeout():
            return DatabaseFault.TIMED_OUT
        case DBAPIError():
            found = _find_by_state(error.orig) or _find_by_code(error.orig)
            lost = DatabaseFault.UNREACHABLE if error.connection_invalidated else None
            return found or lost
        case ConnectionError():
            return DatabaseFault.UNREACHABLE
        case _:
            return None


def _find_by_state(error: BaseException | None) -> DatabaseFault | None:
    """Return the fault that PostgreSQL's SQLSTATE names, None for any other."""
    state = str(getattr(error, "sqlstate", None) or "")
    matching = (_STATES.get(state[:length]) for length in (5, 3, 2))
    return next((fault for fault in matching if fault is not None), None)


def _find_by_code(error: BaseException | None) -> DatabaseFault | None:
    """Return the fault that SQLite's result code names, None for any other."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    return _CODES.get(code) or _CODES.get(code & 0xFF)  # an extended code takes precedence


def describe_connection_failure(error: Exception) -> DatabaseFailure:
    """Return the failure of a connection that could not be opened, or that was lost."""
    fault = _find_by_state(error) or DatabaseFault.UNREACHABLE
    if isinstance(error, TimeoutError):
        return DatabaseFailure(str(error) or "the server does not respond", fault)
    return DatabaseFailure(str(error) or repr(error), fault)


def describe_fault(error: BaseException) -> OperatorError:
    """Return the operator error for an exception that the database raised.

    It is an UnusableDatabaseError if the database is at fault.
    """
    reason = str(getattr(error, "orig", None) or error)
    if (fault := find_fault(error)) is None:
        return OperatorError(
            f"the database cannot be used: {reason}; check TOCSIN_DATABASE_URL and TOCSIN_DATA_DIR"
        )
    return UnusableDatabaseError(reason, fault)


def require_fault(error: Exception) -> OperatorError:
    """Return the operator error for a fault of the database; raises any other error again."""
    if find_fault(error) is None:
        raise error
    return describe_fault(error)

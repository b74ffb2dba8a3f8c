"""Audit log records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import orjson
from sqlalchemy import ColumnElement, Connection, RowMapping, insert

from tocsin.audit.rows import allow_any_text, parse_details, select_rows
from tocsin.clock import isoformat
from tocsin.model import Json
from tocsin.store import clean_text, count_matching
from tocsin.store.tables import EPOCH, audit

MAX_TEXT = 2_000  # characters per text

_LEAST_INTEGER, _MOST_INTEGER = -(2**63), 2**64 - 1  # the range that orjson reads as integers


def clean_details(details: Mapping[str, Json]) -> dict[str, Any]:
    """Return the details with bounded texts and numbers in one canonical form."""
    return {clean_text(key, MAX_TEXT): _clean_detail(value) for key, value in details.items()}


def _clean_detail(value: Json) -> Json:
    match value:
        case str():
            return clean_text(value, MAX_TEXT)
        case float():
            return _clean_number(value)
        case Mapping():
            return clean_details(value)
        case list() | tuple():
            return [_clean_detail(item) for item in value]
        case _:
            return value


def _clean_number(value: float) -> float:
    # JSONB has no exponents and no -0.0: it returns 1e16 as an integer, SQLite does not
    is_integer = value.is_integer() and _LEAST_INTEGER <= value <= _MOST_INTEGER
    return int(value) if is_integer else value


_NAME = 500
_ACTION = 60
_ADDRESS = 60
_REQUEST_ID = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRecord:
    """An action: its actor, target and origin."""

    at: datetime
    actor: str
    action: str
    target: str | None = None
    address: str
    request_id: str
    details: Mapping[str, Json] = field(default_factory=dict)
    count: int = 1
    """The number of occurrences that one entry stands for."""


@dataclass(frozen=True, slots=True)
class AuditPage:
    """One page of a list."""

    entries: list[dict[str, Any]]
    total: int
    exact: bool
    """False where there are more than `total`."""
    next: int | None
    """The value of `before` for the next page, None on the last page."""


def record(connection: Connection, *entries: AuditRecord) -> None:
    """Store entries in the transaction of the actions that they record."""
    if entries:
        connection.execute(insert(audit), [_build_row(entry) for entry in entries])


def record_local(
    connection: Connection,
    at: datetime,
    actor: str,
    action: str,
    *,
    target: str | None = None,
    details: Mapping[str, Json] | None = None,
) -> None:
    """Store the entry of an action that no request caused: of a command, or of the service."""
    entry = AuditRecord(
        at=at,
        actor=actor,
        action=action,
        target=target,
        address="local",
        request_id="",
        details=details or {},
    )
    record(connection, entry)


def _build_row(entry: AuditRecord) -> dict[str, Any]:
    return {
        "at": entry.at,
        "actor": clean_text(entry.actor, _NAME),
        "action": clean_text(entry.action, _ACTION),
        "target": clean_text(entry.target, _NAME),
        "address": clean_text(entry.address, _ADDRESS),
        "request_id": clean_text(entry.request_id, _REQUEST_ID),
        "count": entry.count,
        "details": clean_details(entry.details),
    }


def list_entries(
    connection: Connection,
    *,
    limit: int,
    before: int | None = None,
    action: str | None = None,
    actor: str | None = None,
    target: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> AuditPage:
    """Return a page of matching entries, the newest first; `before` continues an earlier page.

    `since` is inclusive, `until` exclusive. Details that cannot be read are returned as
    `{"unreadable": text}`, such a time as 1970.
    """
    conditions = [
        *_build_conditions(action=action, actor=actor, target=target),
        *_build_time_conditions(since, until),
    ]
    total = count_matching(connection, audit, conditions)
    page = select_rows().where(*conditions).order_by(audit.c.id.desc()).limit(limit + 1)
    if before is not None:
        page = page.where(audit.c.id < before)
    with allow_any_text(connection):
        found = connection.execute(page).mappings().all()
    rows = found[:limit]
    return AuditPage(
        entries=[_represent(row) for row in rows],
        total=total.count,
        exact=total.exact,
        next=rows[-1]["id"] if len(found) > limit else None,
    )


def _build_conditions(**wanted: str | None) -> list[ColumnElement[bool]]:
    return [audit.c[name] == value for name, value in wanted.items() if value is not None]


def _build_time_conditions(
    since: datetime | None, until: datetime | None
) -> Iterator[ColumnElement[bool]]:
    if since is not None:
        yield audit.c.at >= since
    if until is not None:
        yield audit.c.at < until


def _represent(row: RowMapping) -> dict[str, Any]:
    # orjson does not accept SQLAlchemy's key type
    entry = {str(name): _clean_value(value) for name, value in row.items()}
    return entry | {"at": _read_moment(row["at"]), "details": _read_details(row["details"])}


def _clean_value(value: Any) -> Any:
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    return clean_text(value, MAX_TEXT) if isinstance(value, str) else value


def _read_moment(value: Any) -> str:
    try:
        return isoformat(EPOCH + timedelta(microseconds=value))
    except (TypeError, OverflowError):
        return isoformat(EPOCH)


def _read_details(text: str) -> dict[str, Any]:
    try:
        details = parse_details(text)
        orjson.dumps([[[details]]])  # as deeply nested as in a response
    except (TypeError, ValueError):
        details = None
    return details if isinstance(details, dict) else {"unreadable": clean_text(text, MAX_TEXT)}

"""What followed from an incident: who looked into it, and what became of that."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, RowMapping, select

from tocsin.accounting.told import load_events_about
from tocsin.clock import isoformat_or_none
from tocsin.model import NodeKind
from tocsin.store.tables import relations, sessions, write_backs

MAX_INVESTIGATIONS = 20
"""So many investigations of one incident are told, the newest."""
_SESSION = (
    *("id", "schedule_id", "query", "status", "title", "verdict", "risk_score", "error"),
    "created_by",
)
_MOMENTS = ("created_at", "completed_at")
_WRITTEN = ("run", "state", "attempts", "reason")
_WRITTEN_MOMENTS = ("created_at", "finished_at")


def load_investigations(connection: Connection, number: int) -> list[dict[str, Any]]:
    """Return the investigations that have examined an incident, the newest first.

    Each has the events about it, and the comments that it left, or was to leave, at the incident.
    """
    columns = [sessions.c[name] for name in (*_SESSION, *_MOMENTS)]
    query = select(*columns).where(sessions.c.id.in_(_select_sessions(number)))
    newest = query.order_by(sessions.c.id.desc()).limit(MAX_INVESTIGATIONS)
    rows = connection.execute(newest).mappings().all()
    if not rows:
        return []
    told = load_events_about(connection, *(f"session:{row['id']}" for row in rows))
    written = _load_write_backs(connection, number, [row["id"] for row in rows])
    return [
        {
            **{name: row[name] for name in _SESSION},
            **{name: isoformat_or_none(row[name]) for name in _MOMENTS},
            "events": told[f"session:{row['id']}"],
            "write_backs": written[row["id"]],
        }
        for row in rows
    ]


def _select_sessions(number: int) -> Any:
    """Return a query of the sessions that have to do with an incident: by examining it."""
    return select(relations.c.source_value).where(
        relations.c.target_value == str(number),
        relations.c.target_kind == NodeKind.INCIDENT,
        relations.c.source_kind == NodeKind.SESSION,
    )


def _load_write_backs(
    connection: Connection, number: int, of: Sequence[str]
) -> dict[str, list[dict[str, Any]]]:
    """Return what each of these sessions wrote, or is to write, to the incident."""
    columns = (write_backs.c[name] for name in ("session_id", *_WRITTEN, *_WRITTEN_MOMENTS))
    query = select(*columns).where(  # without their texts, which may be long
        write_backs.c.incident_number == number, write_backs.c.session_id.in_(of)
    )
    found = defaultdict(list)
    for row in connection.execute(query.order_by(write_backs.c.run)).mappings():
        found[row["session_id"]].append(_represent_write_back(row))
    return found


def _represent_write_back(row: RowMapping) -> dict[str, Any]:
    moments = {name: isoformat_or_none(row[name]) for name in _WRITTEN_MOMENTS}
    return {name: row[name] for name in _WRITTEN} | moments

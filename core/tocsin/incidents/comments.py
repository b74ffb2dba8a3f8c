"""Comments on incidents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, bindparam, func, insert, select

from tocsin.clock import isoformat
from tocsin.errors import ConflictError
from tocsin.identifiers import new_id
from tocsin.incidents.triage import UNTRIAGED, load_triage
from tocsin.incidents.triage_changes import Author, record_changes, store_triage
from tocsin.model import Json
from tocsin.store.tables import incident_comments, incident_triage, incidents

MAX_COMMENTS = 500
"""How many comments an incident can have."""
_total = (
    select(func.coalesce(incident_triage.c.comment_count, 0))
    .select_from(incidents)
    .outerjoin(incident_triage, incident_triage.c.incident_number == incidents.c.number)
    .where(incidents.c.number == bindparam("number"))
)


def add_comment(
    connection: Connection, number: int, text: str, author: Author, now: datetime
) -> dict[str, Json]:
    """Add a comment to a locked incident, and return its JSON; raises ConflictError if full."""
    triage = load_triage(connection, [number]).get(number, UNTRIAGED)
    count: int = triage["comment_count"]
    if count >= MAX_COMMENTS:
        raise ConflictError(f"Incident {number} has {count} comments, which is the maximum.")
    row = {
        "id": new_id("cmt"),
        "incident_number": number,
        "text": text,
        "created_by": author.name,
        "created_at": now,
    }
    store_triage(connection, number, {**triage, "comment_count": count + 1}, {})
    connection.execute(insert(incident_comments).values(row))
    added: dict[str, Json] = {"comments": {"from": None, "to": row["id"]}}
    record_changes(connection, {number: added}, author, now)
    return _represent_comment(row)


@dataclass(frozen=True, slots=True)
class CommentPage:
    """One page of the comments of an incident, the newest first."""

    comments: list[dict[str, Json]]
    total: int
    next: str | None
    """The ID before which the next page starts; None on the last page."""


def list_comments(
    connection: Connection, number: int, *, limit: int, before: str | None
) -> CommentPage | None:
    """Return a page of the comments of an incident, None for an unknown number."""
    total = connection.scalar(_total, {"number": number})
    if total is None:
        return None
    c = incident_comments.c
    query = select(incident_comments).where(c.incident_number == number)
    query = query.order_by(c.id.desc()).limit(limit + 1)
    if before is not None:
        query = query.where(c.id < before)
    rows = connection.execute(query).mappings().all()
    following = rows[limit - 1]["id"] if len(rows) > limit else None
    return CommentPage(list(map(_represent_comment, rows[:limit])), total, following)


def _represent_comment(row: Mapping[Any, Any]) -> dict[str, Json]:
    return {
        "id": row["id"],
        "text": row["text"],
        "created_by": row["created_by"],
        "created_at": isoformat(row["created_at"]),
    }

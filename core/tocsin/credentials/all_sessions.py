"""Console sessions of all people, for admins."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, delete, select

from tocsin.store.tables import console_sessions

_c = console_sessions.c
_SHOWN = (
    *(_c.id, _c.principal, _c.name, _c.role, _c.begun_at, _c.used_at, _c.expires_at),
    *(_c.address, _c.browser),
)


def list_sessions(
    connection: Connection,
    now: datetime,
    limit: int,
    *,
    principal: str | None = None,
    before: str | None = None,
) -> Sequence[Any]:
    """Return up to `limit` sessions, newest first, of all people or of one principal.

    Sessions without an ID, which an earlier version began, are left out; they last 12 hours.
    """
    query = select(*_SHOWN).where(_c.id.is_not(None), _c.expires_at > now)
    if principal is not None:
        query = query.where(_c.principal == principal)
    if before is not None:
        query = query.where(_c.id < before)
    return connection.execute(query.order_by(_c.id.desc()).limit(limit)).mappings().all()


def end_session_by_id(connection: Connection, id_: str, now: datetime) -> str | None:
    """End a session, and return its principal; None if there is no such session."""
    ended = delete(console_sessions).where(_c.id == id_, _c.expires_at > now)
    found: str | None = connection.scalar(ended.returning(_c.principal))
    return found

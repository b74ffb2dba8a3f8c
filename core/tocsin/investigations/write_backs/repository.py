"""Planned write-backs as rows: one for each incident and run of a session."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, Select, and_, literal_column, select, update

from tocsin.hookspecs import Capability, Provider
from tocsin.model import IncidentStatus, Vocabulary
from tocsin.store import build_insert, clean_text
from tocsin.store.tables import incidents, write_backs

MAX_TEXT = 20_000
MAX_REASON = 2_000


class WriteBackState(Vocabulary):
    """State of a comment."""

    PENDING = "pending"
    WRITTEN = "written"
    FAILED = "failed"


# A literal, since the databases use a partial index only if they see its condition
_IS_PENDING = literal_column("state") == literal_column(f"'{WriteBackState.PENDING}'")


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteBack:
    """A comment that an investigation writes to an incident."""

    session_id: str
    run: int
    incident_number: int
    provider: str
    external_id: str
    text: str
    state: WriteBackState
    attempts: int
    """Number of failed attempts to write it."""
    failures: int
    """Number of those that count toward giving up."""
    reason: str | None
    """Reason of the last failure."""
    due_at: datetime
    created_at: datetime
    finished_at: datetime | None

    @property
    def key(self) -> str:
        """Idempotency key: the SIEM has the comment once, however often it is written."""
        return f"tocsin:{self.session_id}:{self.run}:{self.incident_number}"


_COLUMNS = [write_backs.c[name] for name in WriteBack.__dataclass_fields__]


def select_write_back_providers(providers: Mapping[str, Provider]) -> Mapping[str, Provider]:
    """Return the providers that have write-back configured and support it.

    A plugin that writes no comments qualifies if it can set the configured status.
    """
    return {name: provider for name, provider in providers.items() if _wants_write_back(provider)}


def _wants_write_back(provider: Provider) -> bool:
    settings, able = provider.settings, provider.capabilities()
    if Capability.COMMENT in able:
        return bool(settings.write_back)
    return settings.write_back_status is not None and Capability.STATUS in able


def find_write_back_incidents(
    connection: Connection, numbers: Sequence[int], providers: Collection[str]
) -> Sequence[tuple[int, str, str]]:
    """Return number, provider and external ID of the incidents from these providers."""
    if not numbers or not providers:
        return ()
    columns = (incidents.c.number, incidents.c.provider, incidents.c.external_id)
    query = (
        select(*columns)
        .where(incidents.c.number.in_(numbers), incidents.c.provider.in_(providers))
        .order_by(incidents.c.number)
    )
    return [(number, provider, name) for number, provider, name in connection.execute(query)]


def is_incident_new(connection: Connection, number: int) -> bool:
    """Return whether an incident was New when it was last read."""
    query = select(incidents.c.status).where(incidents.c.number == number)
    return connection.scalar(query) == IncidentStatus.NEW


def plan_write_backs(
    connection: Connection,
    *,
    session_id: str,
    run: int,
    text: str,
    incidents: Sequence[tuple[int, str, str]],
    now: datetime,
) -> None:
    """Plan to write a text to incidents, given by number, provider and external ID.

    A comment that is planned already for the same run and incident does not change.
    """
    rows = [
        {
            "session_id": session_id,
            "run": run,
            "incident_number": number,
            "provider": provider,
            "external_id": external_id,
            "text": clean_text(text, MAX_TEXT),
            "state": WriteBackState.PENDING,
            "attempts": 0,
            "failures": 0,
            "due_at": now,
            "created_at": now,
        }
        for number, provider, external_id in incidents
    ]
    if rows:
        connection.execute(build_insert(connection, write_backs).on_conflict_do_nothing(), rows)


def list_write_backs(connection: Connection, session_id: str) -> Sequence[WriteBack]:
    """Return the written and planned comments of a session, the latest run first."""
    query = select(*_COLUMNS).where(write_backs.c.session_id == session_id)
    order = (write_backs.c.run.desc(), write_backs.c.incident_number)
    return [_to_write_back(row) for row in connection.execute(query.order_by(*order)).mappings()]


def select_due(provider: str, now: datetime) -> Select[Any]:
    """Return the query of the comment that has been due longest at a provider."""
    return (
        select(*_COLUMNS)
        .where(_IS_PENDING, write_backs.c.provider == provider, write_backs.c.due_at <= now)
        .order_by(write_backs.c.due_at)
        .limit(1)
    )


def claim_write_back(
    connection: Connection, provider: str, now: datetime, until: datetime
) -> WriteBack | None:
    """Claim the comment that has been due longest at a provider; None if none is due.

    The claim ends at `until`, when the comment is due again. Its due time identifies the holder,
    so that a holder that comes too late changes nothing.
    """
    query = select_due(provider, now)
    if connection.dialect.name == "postgresql":
        query = query.with_for_update(skip_locked=True)
    row = connection.execute(query).mappings().first()
    if row is None:
        return None
    found = _to_write_back(row)
    _update_held(connection, found, due_at=until)
    return replace(found, due_at=until)


def finish_write_back(
    connection: Connection,
    taken: WriteBack,
    state: WriteBackState,
    now: datetime,
    reason: str | None = None,
) -> bool:
    """Store the final state of a comment, and return whether the caller still held it."""
    shown, failed = clean_text(reason, MAX_REASON), state is WriteBackState.FAILED
    values = {"state": state, "finished_at": now, "reason": shown}
    return _update_held(connection, taken, **values, attempts=taken.attempts + failed)


def postpone_write_back(
    connection: Connection, taken: WriteBack, *, failures: int, due_at: datetime, reason: str
) -> bool:
    """Postpone a comment that could not be written, and return whether the caller still held it."""
    values = {"failures": failures, "due_at": due_at, "reason": clean_text(reason, MAX_REASON)}
    return _update_held(connection, taken, **values, attempts=taken.attempts + 1)


def _update_held(connection: Connection, held: WriteBack, **values: object) -> bool:
    is_held = and_(
        write_backs.c.session_id == held.session_id,
        write_backs.c.run == held.run,
        write_backs.c.incident_number == held.incident_number,
        write_backs.c.due_at == held.due_at,
        write_backs.c.state == WriteBackState.PENDING,
    )
    return bool(connection.execute(update(write_backs).where(is_held).values(**values)).rowcount)


def _to_write_back(row: RowMapping) -> WriteBack:
    return WriteBack(**{**row, "state": WriteBackState(row["state"])})

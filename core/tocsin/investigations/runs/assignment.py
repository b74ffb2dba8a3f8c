"""Inquiry and recorded steps of a run that a node has claimed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import Connection, RowMapping, select

from tocsin.investigations.codec import decode_report
from tocsin.investigations.runs.lease import RunLease, RunLeaseLost
from tocsin.investigations.sessions import LedgerStep, find_last_number, load_steps
from tocsin.model import Inquiry, Persona
from tocsin.store.tables import session_messages, sessions


@dataclass(frozen=True, slots=True)
class RunAssignment:
    """One run of a session."""

    inquiry: Inquiry
    run: int
    timeout: timedelta
    schedule_id: str | None
    recorded: tuple[LedgerStep, ...]
    """The steps that other nodes have recorded in this run."""
    first: int
    """The number of the run's first step."""


def load_assignment(
    connection: Connection, lease: RunLease, *, with_steps: bool = True
) -> RunAssignment:
    """Return the run of a lease. Raises RunLeaseLost if the lease is lost."""
    row = connection.execute(select(sessions).where(*lease.conditions)).mappings().one_or_none()
    if row is None:
        raise RunLeaseLost(f"{lease.session_id}: claimed by another node, or cancelled")
    steps = load_steps(connection, row["id"], row["run"]) if with_steps else ()
    return RunAssignment(
        inquiry=_load_inquiry(connection, row),
        run=row["run"],
        timeout=timedelta(milliseconds=row["timeout_ms"]),
        schedule_id=row["schedule_id"],
        recorded=tuple(steps),
        first=find_last_number(connection, row["id"], row["run"]) + 1,
    )


def _load_inquiry(connection: Connection, row: RowMapping) -> Inquiry:
    m = session_messages.c
    asked = select(m.text).where(m.session_id == row["id"], m.role == "user").order_by(m.number)
    return Inquiry(
        session_id=row["id"],
        messages=tuple(connection.scalars(asked)),
        persona=Persona(row["persona"]),
        provider=row["provider"],
        asked_at=row["asked_at"],
        previous=decode_report(row["report"], row["id"]),
    )

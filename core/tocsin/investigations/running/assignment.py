"""What a node needs to know of a run that it has taken up."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import Connection, RowMapping, select

from tocsin.investigations.report_codec import read_report
from tocsin.investigations.running.lease import Lease, Superseded, holds
from tocsin.investigations.sessions.ledger import Step, last_number, load_steps
from tocsin.model import Inquiry, Persona
from tocsin.store.tables import session_messages, sessions


@dataclass(frozen=True, slots=True)
class Assignment:
    """One run of a session."""

    inquiry: Inquiry
    run: int
    timeout: timedelta
    schedule_id: str | None
    recorded: tuple[Step, ...]
    """The steps that other nodes have taken in this run."""
    first: int
    """The number of the run's first step."""


def load_assignment(connection: Connection, lease: Lease, *, with_steps: bool = True) -> Assignment:
    """Return the run that the lease is of; raises Superseded where it is lost."""
    row = connection.execute(select(sessions).where(*holds(lease))).mappings().one_or_none()
    if row is None:
        raise Superseded(f"{lease.session_id}: it is not this node's any more")
    steps = load_steps(connection, row["id"], row["run"]) if with_steps else ()
    return Assignment(
        inquiry=_inquiry(connection, row),
        run=row["run"],
        timeout=timedelta(milliseconds=row["timeout_ms"]),
        schedule_id=row["schedule_id"],
        recorded=tuple(steps),
        first=last_number(connection, row["id"], row["run"]) + 1,
    )


def _inquiry(connection: Connection, row: RowMapping) -> Inquiry:
    m = session_messages.c
    asked = select(m.text).where(m.session_id == row["id"], m.role == "user").order_by(m.number)
    return Inquiry(
        session_id=row["id"],
        messages=tuple(connection.scalars(asked)),
        persona=Persona(row["persona"]),
        provider=row["provider"],
        asked_at=row["asked_at"],
        previous=read_report(row["report"], row["id"]),
    )

"""Remote objects, such as tickets, that deliveries created or closed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, and_, case, literal, null, or_

from tocsin.delivery.queue.statements import MARK_CLOSED, SELECT_SUBJECTS, STATUS_COLUMNS
from tocsin.delivery.queue.states import AttemptResult
from tocsin.store import build_insert
from tocsin.store.tables import EPOCH, remote_objects


def store_remote_objects(connection: Connection, ended: Sequence[AttemptResult]) -> None:
    """Store the remote IDs of subjects, so that later events update these objects."""
    made = {each.claimed.id: each for each in ended if each.remote_id is not None}
    if not made:
        return
    known = {}
    for row in connection.execute(SELECT_SUBJECTS, {"ids": list(made)}).mappings():
        known[row["destination"], row["subject"]] = made[row["id"]]
    # the same order on every node avoids deadlocks
    for destination, subject in sorted(known):
        attempt = known[destination, subject]
        key = {"destination": destination, "subject": subject}
        values = {
            "remote_id": attempt.remote_id,
            "home": attempt.claimed.tenant_key,
            "event_id": attempt.claimed.event.id,
            "updated_at": attempt.ended_at,
        }
        statement = build_insert(connection, remote_objects).values(**key, **values)
        # a replayed event does not restore the object of its time
        is_newer = or_(
            remote_objects.c.event_id <= values["event_id"],
            remote_objects.c.home != values["home"],
        )
        changing = statement.on_conflict_do_update(
            index_elements=list(key), set_=values | _forget_other_status(values), where=is_newer
        )
        connection.execute(changing)


def mark_closed_objects(connection: Connection, ended: Sequence[AttemptResult]) -> None:
    """Mark the objects that Tocsin closed, to distinguish them from those that people close."""
    closing = {each.claimed.id: each for each in ended if each.closed_subjects}
    if not closing:
        return
    rows = [
        {
            "at_destination": row.destination,
            "of_subject": subject,
            "closed_at": closing[row.id].ended_at,
        }
        for row in connection.execute(SELECT_SUBJECTS, {"ids": list(closing)})
        for subject in closing[row.id].closed_subjects
    ]
    if rows:
        connection.execute(MARK_CLOSED, rows)


def _forget_other_status(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the status columns: unchanged, unless the subject has another object now."""
    c = remote_objects.c
    is_same = and_(c.remote_id == values["remote_id"], c.home == values["home"])
    due_now = {"status_due_at": literal(EPOCH, c.status_due_at.type)}
    return {
        name: case((is_same, c[name]), else_=due_now.get(name, null())) for name in STATUS_COLUMNS
    }

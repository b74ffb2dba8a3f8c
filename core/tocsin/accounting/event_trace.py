"""Events and followed changes in a trace, with their deliveries and attempts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, RowMapping, select

from tocsin.accounting.delivery_outcomes import (
    EVENT_OUTCOMES,
    IS_CHANGE,
    IS_EVENT,
    classify_event,
    count_events,
    rank_state,
)
from tocsin.channels import list_updated_objects
from tocsin.clock import isoformat
from tocsin.delivery import DELIVERED, STATUS_COLUMNS, describe_status, summarize_attempt
from tocsin.model import ChangeType
from tocsin.store.tables import attempts, deliveries, destinations, events

MAX_CHANGES = 50
"""How many of an incident's newest changes a trace lists; it only counts the others."""
_EVENT = tuple(
    events.c[name]
    for name in (
        *("id", "event_type", "timestamp", "routed", "routing_error", "suppressed_by"),
        "subject",
    )
)


def load_incident_events(connection: Connection, number: int) -> dict[str, Any]:
    """Return the members `events`, `changes` and `earlier_changes` of an incident's trace.

    Events and changes are in order, oldest first. `earlier_changes` counts, by outcome, the
    changes before the newest MAX_CHANGES.
    """
    is_about = events.c.subject == f"incident:{number}"
    happened = select(*_EVENT).where(is_about, IS_EVENT).order_by(events.c.id)
    changed = (
        select(*_EVENT, events.c.data["changes"].label("changes"))
        .where(is_about, IS_CHANGE)
        .order_by(events.c.id.desc())
        .limit(MAX_CHANGES + 1)
    )
    event_rows = connection.execute(happened).mappings().all()
    newest = connection.execute(changed).mappings().all()
    change_rows = newest[:MAX_CHANGES][::-1]
    earlier = dict.fromkeys(EVENT_OUTCOMES, 0)
    if len(newest) > MAX_CHANGES:
        is_earlier = events.c.id < change_rows[0]["id"]
        earlier = count_events(connection, is_about, IS_CHANGE, is_earlier)
    arrived = _load_deliveries(connection, [row["id"] for row in (*event_rows, *change_rows)])
    objects = _load_objects(connection, [row["id"] for row in change_rows])
    return {
        "events": [_represent_event(row, arrived[row["id"]]) for row in event_rows],
        "changes": [
            _represent_change(row, row["changes"], arrived[row["id"]], objects[row["id"]])
            for row in change_rows
        ],
        "earlier_changes": earlier,
    }


def load_session_events(
    connection: Connection, ids: Iterable[str]
) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Return the members `events` and `changes` of each session, oldest first."""
    sessions = {f"session:{id_}": id_ for id_ in ids}
    about = select(*_EVENT).where(events.c.subject.in_(list(sessions)), IS_EVENT | IS_CHANGE)
    rows = connection.execute(about.order_by(events.c.id)).mappings().all()
    arrived = _load_deliveries(connection, [row["id"] for row in rows])
    changes = {row["id"] for row in rows if row["event_type"] in list(ChangeType)}
    objects = _load_objects(connection, sorted(changes))
    found: dict[str, dict[str, list[dict[str, Any]]]] = {
        id_: {"events": [], "changes": []} for id_ in sessions.values()
    }
    for row in rows:
        id_, members = row["id"], found[sessions[row["subject"]]]
        if id_ in changes:
            change = _represent_change(row, None, arrived[id_], objects[id_])
            members["changes"].append(change)
        else:
            members["events"].append(_represent_event(row, arrived[id_]))
    return found


def _represent_change(
    row: RowMapping,
    changed: dict[str, dict[str, Any]] | None,
    its_deliveries: Sequence[dict[str, Any]],
    objects: Sequence[dict[str, Any]],
) -> dict[str, Any]:
    """Return a change with the old and new value of each changed member."""
    members = [{"name": name, **values} for name, values in (changed or {}).items()]
    return _represent_event(row, its_deliveries) | {"members": members, "objects": objects}


def _represent_event(row: RowMapping, its_deliveries: Sequence[dict[str, Any]]) -> dict[str, Any]:
    worst = max((rank_state(delivery["state"]) for delivery in its_deliveries), default=None)
    reason = row["routing_error"]
    return {
        "id": row["id"],
        "event_type": row["event_type"],
        "timestamp": isoformat(row["timestamp"]),
        "outcome": classify_event(
            routed=row["routed"],
            on_hold=reason is not None,
            suppressed=row["suppressed_by"] is not None,
            worst=worst,
        ),
        "reason": reason,
        "suppressed_by": row["suppressed_by"],
        "deliveries": its_deliveries,
    }


def _load_deliveries(connection: Connection, of: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """Return the deliveries of these events, by event."""
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    if not of:
        return found
    query = (
        select(*STATUS_COLUMNS)
        .outerjoin(destinations, destinations.c.name == deliveries.c.destination)
        .where(deliveries.c.event_id.in_(of))
        .order_by(deliveries.c.id)
    )
    rows = connection.execute(query).mappings().all()
    tried = _load_attempts(connection, [row["id"] for row in rows])
    for row in rows:
        found[row["event_id"]].append(describe_status(row) | {"attempts": tried[row["id"]]})
    return found


def _load_objects(connection: Connection, of: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """Return the remote objects that the deliveries of these changes updated, by change."""
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    if not of:
        return found
    joined = deliveries.join(attempts, attempts.c.delivery_id == deliveries.c.id)
    query = (
        select(deliveries.c.event_id, deliveries.c.destination, attempts.c.response)
        .select_from(joined)
        .where(deliveries.c.event_id.in_(of), attempts.c.outcome == DELIVERED)
        .order_by(deliveries.c.id, attempts.c.number)
    )
    closed: dict[tuple[str, str, str], bool] = {}
    for event_id, destination, response in connection.execute(query):
        for id_, is_closed in list_updated_objects(response).items():  # a replay closes none again
            key = event_id, destination, id_
            closed[key] = closed.get(key, False) or is_closed
    for (event_id, destination, id_), is_closed in closed.items():
        found[event_id].append({"destination": destination, "id": id_, "closed": is_closed})
    return found


def _load_attempts(connection: Connection, of: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """Return the attempts of these deliveries, by delivery."""
    columns = [column for column in attempts.c if column is not attempts.c.response]
    query = select(*columns).where(attempts.c.delivery_id.in_(of)).order_by(attempts.c.number)
    found = defaultdict(list)
    for row in connection.execute(query).mappings():
        found[row["delivery_id"]].append(summarize_attempt(row))
    return found

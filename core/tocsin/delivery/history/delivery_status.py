"""Delivery status: state, reason and next attempt."""

from __future__ import annotations

from typing import Any

from sqlalchemy import RowMapping, and_, case, func

from tocsin.clock import isoformat, isoformat_or_none
from tocsin.delivery.destinations.repository import DestinationState, StopReason
from tocsin.delivery.queue.states import DELIVERED, ON_HOLD, PENDING
from tocsin.store.tables import deliveries, destinations

_of_destination = destinations.c.state.label("destination_state")

SHOWN_STATE = case(
    (
        and_(
            deliveries.c.state == PENDING,
            func.coalesce(destinations.c.state, "") != DestinationState.ACTIVE.value,
        ),
        ON_HOLD,
    ),
    else_=deliveries.c.state,
)
"""State as shown: a pending delivery is on hold while its destination is not active."""

STATUS_COLUMNS = (
    deliveries,
    SHOWN_STATE.label("shown"),
    _of_destination,
    destinations.c.reason.label("destination_reason"),
    destinations.c.detail.label("destination_detail"),
    destinations.c.held_until,
)
"""Columns for `describe_status`, from `deliveries` outer-joined with `destinations`."""


_CAUSES = {
    StopReason.FAILING: "after repeated failures",
    StopReason.GONE: "because the receiver no longer accepts deliveries",
    StopReason.REMOVED: "because it was removed from plugins.toml",
}


def describe_status(row: RowMapping) -> dict[str, Any]:
    """Return the status of a delivery as shown: state, reason and next attempt."""
    return {
        "id": row["id"],
        "destination": row["destination"],
        "state": row["shown"],
        "reason": _reason(row),
        "due_at": _due_at(row),
        "remote_id": row["remote_id"],
        "remote_url": row["remote_url"],
        "finished_at": isoformat_or_none(row["finished_at"]),
    }


def _reason(row: RowMapping) -> str | None:
    """Return why a delivery has not arrived; None if it has, or before its first attempt."""
    if row["state"] != PENDING or row["shown"] != ON_HOLD:
        return None if row["state"] == DELIVERED else row["reason"]
    if row["destination_state"] is None:
        return "there is no destination with this name"
    state, why = row["destination_state"], row["destination_reason"]
    detail, last = row["destination_detail"], row["reason"]
    is_manual = why == StopReason.MANUAL
    cause = detail if is_manual else why and _CAUSES[StopReason(why)]
    text = " ".join(filter(None, (f"its destination is {state}", cause)))
    if detail and not is_manual:
        text = f"{text}: {detail}"
    if last and last != detail:  # the last failure may be the one that paused the destination
        text = f"{text}; last attempt: {last}"
    return text


def _due_at(row: RowMapping) -> str | None:
    """Return the time of the next attempt; None if it does not depend on time alone."""
    is_served = row["destination_state"] in (DestinationState.ACTIVE, DestinationState.PAUSED)
    if row["state"] != PENDING or not is_served:
        return None
    return isoformat(max(row["due_at"], row["held_until"] or row["due_at"]))

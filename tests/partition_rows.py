"""Events with their deliveries and attempts in the partitions of a month."""

from __future__ import annotations

from datetime import datetime
from itertools import count

from sqlalchemy import Connection, insert

from delivery_rows import add_delivery
from tocsin.identifiers import derive_id, first_id
from tocsin.model import EventType
from tocsin.store.tables import events

_numbers = count(1)


def add_finished(
    connection: Connection, at: datetime, state: str = "delivered", *, routed: bool = True
) -> str:
    """Store an event of this time with a delivery and an attempt, and return its ID."""
    id_ = f"{first_id('evt', at)[:-8]}{next(_numbers):08}"
    row = {"id": id_, "event_type": EventType.INCIDENT_ALERT, "timestamp": at, "routed": routed}
    about = {"data": {"incident_number": 1}, "subject": "incident:1"}
    connection.execute(insert(events).values(**row, **about, related=[], context={}))
    add_delivery(connection, state, event=id_, id=derive_id("dlv", id_))
    return id_

"""What came of earlier attempts at a delivery, as channels are told it."""

from __future__ import annotations

from sqlalchemy import Connection, func, or_, select

from tocsin.delivery.queue.seam import DELIVERED
from tocsin.store import Database
from tocsin.store.tables import attempts


class StoredAttemptLog:
    """The `tocsin.AttemptLog` of a service."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def last_answer(self, delivery_id: str) -> bytes:
        """Return the answer of the last attempt that had one, since the delivery last arrived."""
        return await self._database.read(load_last_response, delivery_id)


def load_last_response(connection: Connection, delivery_id: str) -> bytes:
    """Return what was answered last; nothing where it arrived since, or was never answered."""
    told = or_(attempts.c.outcome == DELIVERED, func.length(attempts.c.response) > 0)
    query = (
        select(attempts.c.outcome, attempts.c.response)
        .where(attempts.c.delivery_id == delivery_id, told)
        .order_by(attempts.c.number.desc())
        .limit(1)
    )
    row = connection.execute(query).one_or_none()
    return b"" if row is None or row.outcome == DELIVERED else bytes(row.response)

"""The names of destinations that deliveries can be asked for by."""

from __future__ import annotations

from sqlalchemy import Connection, select

from tocsin.errors import TocsinError
from tocsin.store.tables import destinations
from tocsin.validation import suggest_nearest


class NoSuchDestinationError(TocsinError):
    """There is no destination of this name, and never was one."""


def require_destination(connection: Connection, name: str) -> None:
    """Raise NoSuchDestinationError, which names the most similar one, where there never was one."""
    known = connection.scalars(select(destinations.c.name).order_by(destinations.c.name)).all()
    if name not in known:
        raise NoSuchDestinationError(
            f"there is no destination {name!r}{suggest_nearest(name, known)}"
        )

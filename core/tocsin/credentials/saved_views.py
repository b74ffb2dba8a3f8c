"""Stored views of the incident list, each of one user of the console."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import orjson
from sqlalchemy import Connection, delete, select

from tocsin.errors import InvalidInputError
from tocsin.store import build_insert, dump_json, lock_exclusively
from tocsin.store.tables import saved_views

_LONGEST_NAME = 40
_MAX_SAVED_VIEWS = 50
_LONGEST_FILTERS = 2_000


def list_saved_views(connection: Connection, owner: str) -> dict[str, dict[str, str]]:
    """Return the filters of a principal's views by name, the one that changed last at the end."""
    query = select(_c.name, _c.filters).where(_c.owner == owner)
    rows = connection.execute(query.order_by(_c.changed_at, _c.name))
    return {name: orjson.loads(filters) for name, filters in rows}


def lock_saved_views(connection: Connection, owner: str) -> None:
    """Wait until nobody else changes the views of a principal, until this transaction ends."""
    lock_exclusively(connection, f"saved views of {owner}")


def save_view(
    connection: Connection, owner: str, name: str, filters: Mapping[str, str], now: datetime
) -> None:
    """Store a view, in place of one with the same name, once the owner's views are locked.

    Raises InvalidInputError for a name or filters that are too long, and if there are too many
    views.
    """
    if not 0 < len(name) <= _LONGEST_NAME:
        raise InvalidInputError(f"Give the view a name of up to {_LONGEST_NAME} characters.")
    text = dump_json(filters)
    if len(text) > _LONGEST_FILTERS:
        raise InvalidInputError(
            f"The view's filters have {len(text):,} characters. Shorten them to "
            f"{_LONGEST_FILTERS:,} or fewer, then save the view."
        )
    stored = list_saved_views(connection, owner)
    if name not in stored and len(stored) >= _MAX_SAVED_VIEWS:
        raise InvalidInputError(
            f"You have {len(stored)} saved views, which is the maximum. Remove a view, then save "
            "this one."
        )
    values = {"filters": text, "changed_at": now}
    statement = build_insert(connection, saved_views).values(owner=owner, name=name, **values)
    is_known = {"index_elements": ["owner", "name"], "set_": values}
    connection.execute(statement.on_conflict_do_update(**is_known))


def delete_view(connection: Connection, owner: str, name: str) -> None:
    """Delete a view, if there is one with this name."""
    connection.execute(delete(saved_views).where(_c.owner == owner, _c.name == name))


def delete_saved_views(connection: Connection, owner: str) -> None:
    """Delete all views of a principal, and those that are being saved."""
    lock_saved_views(connection, owner)
    connection.execute(delete(saved_views).where(_c.owner == owner))


_c = saved_views.c

"""Stored views of the incident list, each of one user of the console."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import orjson
from sqlalchemy import Connection, delete, select

from tocsin.errors import InvalidInputError
from tocsin.store import build_insert, dump_json, load_redactor, lock_exclusively
from tocsin.store.tables import saved_views

LONGEST_VIEW_NAME = 40
MAX_SAVED_VIEWS = 50
"""Views of one user."""
_LONGEST_FILTERS = 2_000
Views = dict[str, dict[str, str]]
"""The filters of each view, by its name."""


def list_saved_views(connection: Connection, owner: str) -> Views:
    """Return the views of a principal, the one that changed last at the end."""
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
    if not 0 < len(name) <= LONGEST_VIEW_NAME:
        raise InvalidInputError(f"Give the view a name of up to {LONGEST_VIEW_NAME} characters.")
    length = len(dump_json(filters))
    if length > _LONGEST_FILTERS:
        raise InvalidInputError(
            f"The filters of the view have {length:,} characters. Shorten them to "
            f"{_LONGEST_FILTERS:,}, then save the view."
        )
    stored = list_saved_views(connection, owner)
    if name not in stored and len(stored) >= MAX_SAVED_VIEWS:
        raise InvalidInputError(
            f"You have {len(stored)} saved views, which is the maximum. Remove a view, then save "
            "this one."
        )
    _store(connection, owner, name, filters, now)


def delete_view(connection: Connection, owner: str, name: str) -> None:
    """Delete a view, if there is one with this name."""
    connection.execute(delete(saved_views).where(_c.owner == owner, _c.name == name))


def delete_saved_views(connection: Connection, owner: str) -> None:
    """Delete all views of a principal, and those that are being saved."""
    lock_saved_views(connection, owner)
    connection.execute(delete(saved_views).where(_c.owner == owner))


def add_views(connection: Connection, owner: str, views: Views, now: datetime) -> Views:
    """Add views that were stored elsewhere, and return those for which there is no room.

    The caller has locked the owner's views. A view gets a number if another one has its name. Views
    that contain erased values are left out.
    """
    stored, redactor = list_saved_views(connection, owner), load_redactor(connection)
    left: Views = {}
    for name, filters in views.items():
        content = (name, filters)
        if redactor is not None and redactor.redact(content) is not content:
            continue
        free = _find_free_name(name, filters, stored)
        if free in stored:
            continue
        if len(stored) < MAX_SAVED_VIEWS:
            _store(connection, owner, free, filters, now)
            stored[free] = filters
        else:
            left[name] = filters
    return left


def _find_free_name(name: str, filters: Mapping[str, str], stored: Views) -> str:
    """Return a name that no other view has; a stored one if that is the same view."""
    found, number = name, 1
    while stored.get(found, filters) != filters:
        number += 1
        suffix = f" ({number})"
        found = name[: LONGEST_VIEW_NAME - len(suffix)] + suffix
    return found


def _store(
    connection: Connection, owner: str, name: str, filters: Mapping[str, str], now: datetime
) -> None:
    values = {"filters": dump_json(filters), "changed_at": now}
    statement = build_insert(connection, saved_views).values(owner=owner, name=name, **values)
    is_known = {"index_elements": ["owner", "name"], "set_": values}
    connection.execute(statement.on_conflict_do_update(**is_known))


_c = saved_views.c

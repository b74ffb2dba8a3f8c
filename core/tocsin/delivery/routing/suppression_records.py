"""Records of suppression rules: creation, end, pages."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, RowMapping, func, insert, select, update

from tocsin.errors import InvalidInputError
from tocsin.store.tables import suppressions

MAX_DURATION = timedelta(days=366)
MAX_ACTIVE = 200


class SuppressionNameTakenError(Exception):
    """A rule with this name exists or existed; names are unique because events refer to them."""


@dataclass(frozen=True, slots=True)
class NewSuppression:
    """A rule to create."""

    name: str
    owner: str
    reason: str
    ends_at: datetime
    provider: str | None
    title: str | None
    entity: str | None
    cidr: str | None


def create_suppression(
    connection: Connection, rule: NewSuppression, created_by: str, now: datetime
) -> RowMapping:
    """Create a rule, and return its row.

    Raises:
        InvalidInputError: The end is in the past or too late, or too many rules are active.
        SuppressionNameTakenError: The name was used before.
    """
    if not now < rule.ends_at <= now + MAX_DURATION:
        raise InvalidInputError(
            f"ends_at must be in the future and at most {MAX_DURATION.days} days from now"
        )
    c = suppressions.c
    active = select(func.count()).select_from(suppressions).where(c.ends_at > now)
    if connection.scalars(active).one() >= MAX_ACTIVE:
        raise InvalidInputError(
            f"there are {MAX_ACTIVE} active suppression rules, which is the maximum; end one first"
        )
    if load_suppression(connection, rule.name) is not None:
        raise SuppressionNameTakenError
    row = {name: getattr(rule, name) for name in NewSuppression.__slots__}
    row |= {"created_by": created_by, "created_at": now, "suppressed_events": 0}
    connection.execute(insert(suppressions).values(row))
    made = load_suppression(connection, rule.name)
    assert made is not None  # noqa: S101 - it was just stored
    return made


def load_suppression(connection: Connection, name: str) -> RowMapping | None:
    """Return the row of a rule, or None if there is no rule with this name."""
    query = select(suppressions).where(suppressions.c.name == name)
    return connection.execute(query).mappings().one_or_none()


def list_suppressions(
    connection: Connection, limit: int, *, after: str | None, active_at: datetime | None
) -> list[Any]:
    """Return up to `limit` rows, sorted by name; all rules, or those active at a time."""
    query = select(suppressions).order_by(suppressions.c.name).limit(limit)
    if after is not None:
        query = query.where(suppressions.c.name > after)
    if active_at is not None:
        query = query.where(suppressions.c.ends_at > active_at)
    return list(connection.execute(query).mappings())


def end_suppression(connection: Connection, name: str, now: datetime) -> bool:
    """End an active rule now; return whether it was active."""
    c = suppressions.c
    ended = update(suppressions).where(c.name == name, c.ends_at > now).values(ends_at=now)
    return bool(connection.execute(ended).rowcount)

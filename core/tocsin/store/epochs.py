"""Epochs, which are unbroken histories of a database, and the head of the current one.

Who keeps a head outside the database can tell later whether the database was rolled back: a
backup that was restored, a copy, or a file that was removed. Then a new epoch begins, far above all
numbers that were ever issued, so that none is issued twice.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, ScalarSelect, func, insert, literal_column, select, update
from sqlalchemy.dialects.postgresql import JSONB

from tocsin.store.notifications import lock_exclusively
from tocsin.store.statements import INCIDENT_CHANGE, INCIDENT_NUMBER
from tocsin.store.tables import epochs, sequences

JUMP = 1_000_000
"""The numbers that a new epoch leaves out: more than are issued after the last head was stored."""


@dataclass(frozen=True, slots=True)
class Head:
    """The end of what a database holds."""

    epoch: int
    epoch_id: str
    incident_number: int
    """The highest number of an incident that was issued."""
    incident_change: int
    """The highest number of a change that was issued."""


@dataclass(frozen=True, slots=True)
class Rollback:
    """A database that is behind a known head."""

    known: Head
    found: Head
    is_other: bool
    """Whether the database does not know the epoch of the known head at all."""

    def __str__(self) -> str:
        """Return what was known and what was found, as one sentence."""
        what = (
            "is a different one, or older than that epoch" if self.is_other else "was rolled back"
        )
        return (
            f"the database {what}: epoch {self.known.epoch} had reached incident "
            f"{self.known.incident_number} (change {self.known.incident_change}); found epoch "
            f"{self.found.epoch}, incident {self.found.incident_number} "
            f"(change {self.found.incident_change})"
        )


@dataclass(frozen=True, slots=True)
class Epoch:
    """One epoch of the database."""

    number: int
    id: str
    started_at: datetime
    first_number: int
    first_change: int
    reason: str | None
    """Why it began; None for the first one."""
    after: str | None
    """The ID of the epoch that was known when this one began."""
    found_number: int | None
    """The highest incident number that the database held when this epoch began."""
    known_number: int | None
    """The highest incident number that was known when this epoch began."""


def _select_value(name: str) -> ScalarSelect[Any]:
    return select(sequences.c.value).where(sequences.c.name == name).scalar_subquery()


# One statement, so that all of it is of one moment
_HEAD = (
    select(
        epochs.c.number, epochs.c.id, _select_value(INCIDENT_NUMBER), _select_value(INCIDENT_CHANGE)
    )
    .order_by(epochs.c.number.desc())
    .limit(1)
)
# As text: a transaction that stores one event would spend a fifth of its time on building it
_NUMBER = "SELECT max(number) FROM epochs"
EPOCH_MEMBER = func.jsonb_build_object(
    literal_column("'epoch'"), select(func.max(epochs.c.number)).scalar_subquery(), type_=JSONB()
)
"""The number of the current epoch as a member of a document, for statements of PostgreSQL."""
_EPOCHS = select(*(epochs.c[name] for name in Epoch.__slots__)).order_by(epochs.c.number)


def load_head(connection: Connection) -> Head:
    """Return the head of the database."""
    return Head(*connection.execute(_HEAD).one())


def load_epochs(connection: Connection) -> list[Epoch]:
    """Return the epochs of the database, the oldest first."""
    return [Epoch(*row) for row in connection.execute(_EPOCHS)]


def load_epoch_number(connection: Connection) -> int:
    """Return the number of the current epoch."""
    return int(connection.exec_driver_sql(_NUMBER).scalar_one())


def find_rollback(connection: Connection, known: Head) -> Rollback | None:
    """Return how far the database is behind a known head; None if it is not behind.

    A head of an earlier epoch is behind if it reaches into the epoch that followed.
    """
    found, following = load_head(connection), _index_following(load_epochs(connection))
    if known.epoch_id == found.epoch_id:
        last = found.incident_number, found.incident_change
    elif (after := following.get(known.epoch_id)) is not None:
        last = after.first_number - 1, after.first_change - 1
    else:
        return Rollback(known, found, is_other=True)
    if known.incident_number > last[0] or known.incident_change > last[1]:
        return Rollback(known, found, is_other=False)
    return None


def _index_following(known: Iterable[Epoch]) -> Mapping[str, Epoch]:
    """Return the epoch that followed each epoch ID."""
    following: dict[str, Epoch] = {}
    previous = None
    for epoch in known:
        following |= {id_: epoch for id_ in (previous, epoch.after) if id_ is not None}
        previous = epoch.id
    return following


def begin_epoch(connection: Connection, known: Head, reason: str, now: datetime) -> Head:
    """Begin a new epoch above `known` and the database's own head, and return its head.

    For a database that was found, or is going to be, older than what is known of it.
    """
    lock_exclusively(connection, "epoch")
    found = load_head(connection)
    first_number = max(known.incident_number, found.incident_number) + JUMP + 1
    first_change = max(known.incident_change, found.incident_change) + JUMP + 1
    epoch = Epoch(
        number=max(known.epoch, found.epoch) + 1,
        id=secrets.token_hex(16),
        started_at=now,
        first_number=first_number,
        first_change=first_change,
        reason=reason,
        after=known.epoch_id,
        found_number=found.incident_number,
        known_number=known.incident_number,
    )
    connection.execute(
        insert(epochs).values({name: getattr(epoch, name) for name in Epoch.__slots__})
    )
    for name, first in ((INCIDENT_NUMBER, first_number), (INCIDENT_CHANGE, first_change)):
        behind = update(sequences).where(sequences.c.name == name)
        connection.execute(behind.values(value=first - 1))
    return load_head(connection)


def settle_heads(connection: Connection, known: Iterable[Head], now: datetime) -> list[Rollback]:
    """Begin a new epoch for each known head that the database is behind, and return these.

    Nodes that start at the same time do so one after the other: the second finds the new epoch.
    """
    lock_exclusively(connection, "epoch")
    rollbacks = []
    for head in known:
        if (rollback := find_rollback(connection, head)) is not None:
            begin_epoch(connection, head, str(rollback), now)
            rollbacks.append(rollback)
    return rollbacks

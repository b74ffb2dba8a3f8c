"""People who sign in to the console with passkeys: stored records and their changes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, Row, delete, select, update

from tocsin.credentials.console_sessions import ConsoleRole, end_principal_sessions
from tocsin.credentials.records import NoSuchRecordError
from tocsin.credentials.saved_views import delete_saved_views
from tocsin.errors import NameTakenError
from tocsin.identifiers import new_id
from tocsin.store import build_insert
from tocsin.store.tables import passkey_links, people

_KIND = "person"


class PersonStatus(StrEnum):
    """Status of a person; only active people sign in."""

    ACTIVE = "active"
    DISABLED = "disabled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Somebody who signs in with passkeys."""

    id: str
    """Identifies the person to authenticators, and is never given to another one."""
    name: str
    role: ConsoleRole
    created_by: str
    created_at: datetime
    disabled_at: datetime | None = None

    @property
    def principal(self) -> str:
        """The principal of the person's sessions."""
        return f"{_KIND}:{self.name}"

    @property
    def status(self) -> PersonStatus:
        """Whether the person can sign in."""
        return PersonStatus.ACTIVE if self.disabled_at is None else PersonStatus.DISABLED


def create_person(
    connection: Connection, name: str, role: ConsoleRole, created_by: str, now: datetime
) -> Person:
    """Store and return a new person; raises NameTakenError."""
    made = Person(id=new_id("psn"), name=name, role=role, created_by=created_by, created_at=now)
    row = {column.name: getattr(made, column.name) for column in people.columns}
    statement = build_insert(connection, people).values(row).on_conflict_do_nothing()
    if not connection.execute(statement).rowcount:
        raise NameTakenError(name)
    # of an earlier person with this name, whom a node without saved views deleted
    delete_saved_views(connection, made.principal)
    return made


def load_person(connection: Connection, name: str, *, lock: bool = False) -> Person:
    """Return the person with this name; raises NoSuchRecordError."""
    person = find_principal(connection, f"{_KIND}:{name}", lock=lock)
    if person is None:
        raise NoSuchRecordError
    return person


def find_principal(connection: Connection, principal: str, *, lock: bool = False) -> Person | None:
    """Return the person of a session's principal, None for principals of another kind."""
    kind, _, name = principal.partition(":")
    if kind != _KIND:
        return None
    query = select(people).where(people.c.name == name)
    row = connection.execute(query.with_for_update() if lock else query).one_or_none()
    return None if row is None else to_person(row)


def list_people(connection: Connection, limit: int, *, after: str | None = None) -> list[Person]:
    """Return people by name, after a name if one is given."""
    query = select(people).order_by(people.c.name).limit(limit)
    if after is not None:
        query = query.where(people.c.name > after)
    return [to_person(row) for row in connection.execute(query)]


def has_people(connection: Connection) -> bool:
    """Return whether there is somebody who can sign in with a passkey."""
    query = select(people.c.id).where(people.c.disabled_at.is_(None)).limit(1)
    return connection.scalar(query) is not None


def change_person(
    connection: Connection,
    name: str,
    now: datetime,
    *,
    role: ConsoleRole | None = None,
    enabled: bool | None = None,
) -> tuple[Person, bool]:
    """Change the role or the status of a person; return them and whether anything changed.

    A change ends all their sessions, so that it applies at once. Without access, their links are
    no longer valid. Raises NoSuchRecordError.
    """
    person = load_person(connection, name, lock=True)
    disabled_at = person.disabled_at
    if enabled is not None:
        disabled_at = None if enabled else disabled_at or now
    changed = replace(person, role=role or person.role, disabled_at=disabled_at)
    if changed == person:
        return person, False
    values = {"role": changed.role, "disabled_at": changed.disabled_at}
    connection.execute(update(people).where(people.c.id == person.id).values(values))
    if changed.status is PersonStatus.DISABLED:
        connection.execute(delete(passkey_links).where(passkey_links.c.person_id == person.id))
    end_principal_sessions(connection, person.principal)
    return changed, True


def delete_person(connection: Connection, person: Person) -> None:
    """Delete a locked person with their passkeys, links, saved views and sessions."""
    connection.execute(delete(people).where(people.c.id == person.id))
    delete_saved_views(connection, person.principal)
    end_principal_sessions(connection, person.principal)


def to_person(row: Row[Any]) -> Person:
    """Return the person of a row."""
    values = {column.name: getattr(row, column.name) for column in people.columns}
    return Person(**values | {"role": ConsoleRole(row.role)})

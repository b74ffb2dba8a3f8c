"""Stored passkeys and the rules of their use."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, Row, delete, select, update

from tocsin.credentials.console_sessions import end_principal_sessions
from tocsin.credentials.passkey_ceremonies import NewCredential, PasskeyUse
from tocsin.credentials.passkey_challenges import use_challenge
from tocsin.credentials.people import Person, to_person
from tocsin.credentials.records import NoSuchRecordError
from tocsin.errors import ConflictError
from tocsin.identifiers import new_id
from tocsin.store import build_insert
from tocsin.store.tables import passkeys, people

MAX_PASSKEYS = 20
"""Passkeys of one person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passkey:
    """A passkey of a person."""

    id: str
    person_id: str
    credential_id: str
    """In base64url."""
    public_key: bytes
    """A COSE key in CBOR."""
    sign_count: int
    """Number of signatures that the authenticator reported last; 0 if it does not count them."""
    label: str
    created_at: datetime
    last_used_at: datetime | None = None


class Refusal(StrEnum):
    """Why a passkey was refused whose signature is valid."""

    DELETED = "the passkey was deleted"
    DISABLED = "the person is disabled"
    REPLAYED = "the challenge was already used"
    COUNTER = "the sign counter did not increase; the passkey may have been copied"


def store_passkey(
    connection: Connection,
    person: Person,
    new: NewCredential,
    label: str,
    now: datetime,
    *,
    signs_in: bool,
) -> Passkey:
    """Store and return a new passkey of a locked person; `signs_in` if it begins a session.

    Raises ConflictError if the challenge or the passkey is already known, or with MAX_PASSKEYS.
    """
    if not use_challenge(connection, new.challenge, now):
        raise ConflictError("This passkey was already created. Reload the page.")
    if len(list_passkeys(connection, person.id)) >= MAX_PASSKEYS:
        raise ConflictError(f"You have {MAX_PASSKEYS} passkeys, which is the maximum.")
    made = Passkey(
        id=new_id("pky"),
        person_id=person.id,
        credential_id=new.credential_id,
        public_key=new.public_key,
        sign_count=new.sign_count,
        label=label,
        created_at=now,
        last_used_at=now if signs_in else None,
    )
    row = {column.name: getattr(made, column.name) for column in passkeys.columns}
    statement = build_insert(connection, passkeys).values(row).on_conflict_do_nothing()
    if not connection.execute(statement).rowcount:
        raise ConflictError("This passkey is already registered.")
    return made


def find_passkey(connection: Connection, credential_id: str) -> Passkey | None:
    """Return the passkey of a credential, None if there is none."""
    query = select(passkeys).where(passkeys.c.credential_id == credential_id)
    row = connection.execute(query).one_or_none()
    return None if row is None else _to_passkey(row)


def list_passkeys(connection: Connection, person_id: str) -> list[Passkey]:
    """Return the passkeys of a person, oldest first."""
    return group_passkeys(connection, [person_id])[person_id]


def group_passkeys(
    connection: Connection, person_ids: Collection[str]
) -> Mapping[str, list[Passkey]]:
    """Return the passkeys of people by the person's ID, oldest first."""
    query = select(passkeys).where(passkeys.c.person_id.in_(person_ids)).order_by(passkeys.c.id)
    found = defaultdict[str, list[Passkey]](list)
    for row in connection.execute(query):
        found[row.person_id].append(_to_passkey(row))
    return found


def rename_passkey(connection: Connection, person: Person, id_: str, label: str) -> None:
    """Change the label of a person's passkey; raises NoSuchRecordError."""
    change = update(passkeys).where(*_is_of(person, id_)).values(label=label)
    if not connection.execute(change).rowcount:
        raise NoSuchRecordError


def delete_passkey(
    connection: Connection, person: Person, id_: str, *, secret: str | None = None
) -> None:
    """Delete a person's passkey; raises NoSuchRecordError.

    Ends the person's sessions, since the passkey may have begun them; that with `secret` stays.
    """
    if not connection.execute(delete(passkeys).where(*_is_of(person, id_))).rowcount:
        raise NoSuchRecordError
    end_principal_sessions(connection, person.principal, but=secret)


def accept_use(
    connection: Connection, use: PasskeyUse, now: datetime
) -> tuple[Person | None, Refusal | None]:
    """Record a verified use of a passkey; return its person, and why it is refused.

    The counter must increase where the authenticator has one (Web Authentication Level 3, section
    7.2, step 22).
    """
    query = select(people).join(passkeys, passkeys.c.person_id == people.c.id)
    row = connection.execute(
        query.where(passkeys.c.id == use.passkey_id).with_for_update(of=people)
    ).one_or_none()
    if row is None:
        return None, Refusal.DELETED
    person = to_person(row)
    if person.disabled_at is not None:
        return person, Refusal.DISABLED
    if not use_challenge(connection, use.challenge, now):
        return person, Refusal.REPLAYED
    counting = select(passkeys.c.sign_count).where(passkeys.c.id == use.passkey_id)
    known = connection.scalar(counting.with_for_update())
    if known is None:
        return person, Refusal.DELETED
    if (known or use.sign_count) and use.sign_count <= known:
        return person, Refusal.COUNTER
    used = {"sign_count": use.sign_count, "last_used_at": now}
    connection.execute(update(passkeys).where(passkeys.c.id == use.passkey_id).values(used))
    return person, None


def _is_of(person: Person, id_: str) -> tuple[Any, ...]:
    return passkeys.c.id == id_, passkeys.c.person_id == person.id


def _to_passkey(row: Row[Any]) -> Passkey:
    return Passkey(**row._asdict())

"""One-time links with which a person creates a passkey."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, delete, insert, select

from tocsin.credentials.people import Person, to_person
from tocsin.credentials.random_secrets import digest_secret
from tocsin.store.tables import passkey_links, people

PASSKEY_LINK = "/sign-in/new-passkey"
"""Path of the page that redeems a link."""


def issue_passkey_link(
    connection: Connection, person: Person, *, url: str, expires_at: datetime, now: datetime
) -> str:
    """Return a link to the console at `url` for the person; it replaces earlier links.

    The code is in the fragment, which browsers send to no server: it is in no log and no `Referer`.
    """
    code = secrets.token_urlsafe(32)
    replaced = (passkey_links.c.expires_at <= now) | (passkey_links.c.person_id == person.id)
    connection.execute(delete(passkey_links).where(replaced))
    row = {"digest": digest_secret(code), "person_id": person.id, "expires_at": expires_at}
    connection.execute(insert(passkey_links).values(row))
    return f"{url}{PASSKEY_LINK}#{code}"


def list_link_ends(
    connection: Connection, person_ids: Collection[str], now: datetime
) -> Mapping[str, datetime]:
    """Return when the unused links of people expire, by the person's ID."""
    query = select(passkey_links.c.person_id, passkey_links.c.expires_at).where(
        passkey_links.c.person_id.in_(person_ids), passkey_links.c.expires_at > now
    )
    return {row.person_id: row.expires_at for row in connection.execute(query)}


def find_link_person(connection: Connection, code: str, now: datetime) -> Person | None:
    """Return the person of a valid code, None for any other code; changes nothing."""
    query = select(people).join(passkey_links, passkey_links.c.person_id == people.c.id)
    row = connection.execute(query.where(*_is_valid(code, now))).one_or_none()
    return None if row is None else to_person(row)


def redeem_passkey_link(connection: Connection, code: str, now: datetime) -> Person | None:
    """Return the person of a valid code, locked; the code is valid no more.

    Returns None for any other code.
    """
    found = find_link_person(connection, code, now)
    if found is None:
        return None
    # The person is locked first, as for a change, which may make the link invalid meanwhile
    locked = select(people).where(people.c.id == found.id).with_for_update()
    row = connection.execute(locked).one_or_none()
    used = connection.execute(delete(passkey_links).where(*_is_valid(code, now))).rowcount
    return to_person(row) if row is not None and used else None


def _is_valid(code: str, now: datetime) -> tuple[ColumnElement[bool], ...]:
    return passkey_links.c.digest == digest_secret(code), passkey_links.c.expires_at > now

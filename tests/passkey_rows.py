"""A person with a passkey, as stored."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, insert

from tocsin.credentials import ConsoleRole, create_person
from tocsin.store.tables import passkeys

PASSKEY = "pky_01KAJD9V3M7P3Q4R5S6T7V8W9X"


def add_passkey(connection: Connection, at: datetime, name: str = "ben") -> str:
    """Store a person with a passkey that no authenticator has, and return its ID."""
    person = create_person(connection, name, ConsoleRole.ANALYST, "ana", at)
    row = {"id": PASSKEY, "person_id": person.id, "credential_id": "AA", "public_key": b""}
    row |= {"sign_count": 0, "label": "Laptop", "created_at": at}
    connection.execute(insert(passkeys).values(row))
    return PASSKEY

"""What was done by a command on this machine, for the audit log."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from getpass import getuser

from sqlalchemy import Connection

from tocsin import audit
from tocsin.model import Json


def whoami() -> str:
    """Return the name that whoever runs the command has in audit entries and records."""
    return f"local:{getuser()}"


def record(
    connection: Connection,
    now: datetime,
    action: str,
    *,
    target: str | None = None,
    details: Mapping[str, Json] | None = None,
) -> None:
    """Store that it was done, in the transaction in which it is done."""
    entry = audit.AuditRecord(
        at=now,
        actor=whoami(),
        action=action,
        target=target,
        address="local",
        request_id="",
        details=details or {},
    )
    audit.record(connection, entry)

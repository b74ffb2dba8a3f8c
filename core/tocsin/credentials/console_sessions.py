"""Stored sessions of console users."""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256

from sqlalchemy import Connection, delete, insert, select

from tocsin.model import Vocabulary
from tocsin.store.tables import console_sessions

LONGEST = timedelta(hours=12)
"""Maximum length of a session: a long working day."""


class ConsoleRole(Vocabulary):
    """Role of a console user."""

    ADMIN = "admin"
    VIEWER = "viewer"
    """Read-only access."""

    def includes(self, other: ConsoleRole) -> bool:
        """Return whether this role has all permissions of the other."""
        return self is ConsoleRole.ADMIN or other is ConsoleRole.VIEWER


@dataclass(frozen=True, slots=True)
class ConsoleSession:
    """A signed-in user."""

    principal: str
    """The kind and the identifier, such as `admin:ana` or `oidc:00u1`."""
    name: str
    """Display name."""
    role: ConsoleRole
    expires_at: datetime


def begin_session(
    connection: Connection, session: ConsoleSession, now: datetime
) -> tuple[str, datetime]:
    """Store a session; return the secret for its cookie and its end."""
    secret = secrets.token_urlsafe(32)
    expires_at = min(session.expires_at, now + LONGEST)
    row = {
        "digest": _digest(secret),
        "principal": session.principal,
        "name": session.name,
        "role": session.role,
        "begun_at": now,
        "expires_at": expires_at,
    }
    connection.execute(delete(_table).where(_c.expires_at <= now))
    connection.execute(insert(_table).values(row))
    return secret, expires_at


def find_session(connection: Connection, secret: str, now: datetime) -> ConsoleSession | None:
    """Return the session of a cookie, None if there is none or it has ended."""
    row = connection.execute(select(_table).where(_c.digest == _digest(secret))).one_or_none()
    if row is None or row.expires_at <= now:
        return None
    return ConsoleSession(row.principal, row.name, ConsoleRole(row.role), row.expires_at)


def end_session(connection: Connection, secret: str) -> None:
    """End the session of a cookie, if there is one."""
    connection.execute(delete(_table).where(_c.digest == _digest(secret)))


def end_sessions_by_kind(connection: Connection, kind: str) -> None:
    """End all sessions of principals of a kind, such as `admin`."""
    connection.execute(delete(_table).where(_c.principal.startswith(f"{kind}:", autoescape=True)))


def form_token(secret: str) -> str:
    """Return the token that each form must send in addition to the session cookie.

    It protects against cross-site requests, which carry the cookie but cannot read the token.
    """
    return hmac.digest(secret.encode(), b"form", "sha256").hex()


def is_form_token(secret: str, presented: str) -> bool:
    """Return whether `presented` is the token of the session, compared in constant time."""
    return hmac.compare_digest(form_token(secret).encode(), presented.encode())


_table = console_sessions
_c = console_sessions.c


def _digest(secret: str) -> str:
    # a plain hash is enough, because 256 random bits cannot be guessed
    return sha256(secret.encode()).hexdigest()

"""Stored sessions of console users."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy import Connection, and_, delete, insert, or_, select, update

from tocsin.credentials.random_secrets import digest_secret
from tocsin.identifiers import new_id
from tocsin.model import Vocabulary
from tocsin.store.tables import console_sessions

LONGEST_SESSION = timedelta(hours=12)
"""Maximum length of a session: a long working day."""
USE_PRECISION = timedelta(minutes=5)
"""The interval at which the last use of a session is stored."""
_CLAIMED = timedelta(seconds=30)  # longer than the issuer is waited for


class ConsoleRole(Vocabulary):
    """Role of a console user."""

    ADMIN = "admin"
    """Everything, including credentials and plugins."""
    OPERATOR = "operator"
    """What analysts do, and destinations, schedules and backfills."""
    ANALYST = "analyst"
    """Triage, investigations and replays."""
    AUDITOR = "auditor"
    """Read-only access, including the audit log."""
    VIEWER = "viewer"
    """Read-only access."""

    def includes(self, other: ConsoleRole) -> bool:
        """Return whether this role has all permissions of the other."""
        return other in {self, ConsoleRole.VIEWER, *_INCLUDED[self]}


_INCLUDED: Mapping[ConsoleRole, Collection[ConsoleRole]] = {
    ConsoleRole.ADMIN: tuple(ConsoleRole),
    ConsoleRole.OPERATOR: (ConsoleRole.ANALYST,),
    ConsoleRole.ANALYST: (),
    ConsoleRole.AUDITOR: (),
    ConsoleRole.VIEWER: (),
}


@dataclass(frozen=True, slots=True)
class SessionOrigin:
    """Where a session was begun."""

    address: str | None = None
    browser: str | None = None
    """The header `User-Agent`."""


@dataclass(frozen=True, slots=True)
class OwnSession:
    """A session in the list of its user's sessions."""

    id: str | None
    """None for sessions that an earlier version began."""
    is_current: bool
    begun_at: datetime
    used_at: datetime | None
    expires_at: datetime
    origin: SessionOrigin


@dataclass(frozen=True, slots=True)
class ConsoleSession:
    """A signed-in user."""

    principal: str
    """The kind and the identifier, such as `admin:ana` or `oidc:00u1`."""
    name: str
    """Display name."""
    role: ConsoleRole
    expires_at: datetime
    begun_at: datetime | None = None
    """None before it has begun."""
    sid: str | None = None
    """The session at the issuer, if it names one."""
    sealed_grant: str | None = field(default=None, repr=False)
    """Encrypted refresh token, if the issuer gave one."""
    check_at: datetime | None = None
    """Time of the next check with the issuer; None for admin tokens, which need none."""
    valid_until: datetime | None = None
    """End of the session unless a check succeeds before."""
    origin: SessionOrigin = field(default_factory=SessionOrigin)
    used_at: datetime | None = None
    """Last use, within `USE_PRECISION`."""

    def is_due(self, now: datetime) -> bool:
        """Return whether the issuer is to be asked again."""
        return self.check_at is not None and now >= self.check_at

    def is_overdue(self, now: datetime) -> bool:
        """Return whether the session is no longer valid without a check."""
        return self.valid_until is not None and now >= self.valid_until


def begin_session(
    connection: Connection, session: ConsoleSession, now: datetime
) -> tuple[str, datetime]:
    """Store a session; return the secret for its cookie and its end."""
    secret = secrets.token_urlsafe(32)
    expires_at = min(session.expires_at, now + LONGEST_SESSION)
    row = {
        "digest": digest_secret(secret),
        "principal": session.principal,
        "name": session.name,
        "role": session.role,
        "begun_at": now,
        "expires_at": expires_at,
        "sid": session.sid,
        "id": new_id("cse"),
        "address": session.origin.address,
        "browser": session.origin.browser,
        "used_at": now,
        **_describe_check(session),
    }
    connection.execute(delete(_table).where(_c.expires_at <= now))
    connection.execute(insert(_table).values(row))
    return secret, expires_at


def find_session(connection: Connection, secret: str, now: datetime) -> ConsoleSession | None:
    """Return the session of a cookie, None if there is none or it has ended."""
    row = connection.execute(select(_table).where(_c.digest == digest_secret(secret))).one_or_none()
    if row is None or row.expires_at <= now:
        return None
    return ConsoleSession(
        principal=row.principal,
        name=row.name,
        role=ConsoleRole(row.role),
        expires_at=row.expires_at,
        begun_at=row.begun_at,
        sid=row.sid,
        sealed_grant=row.sealed_grant,
        check_at=row.check_at,
        valid_until=row.valid_until,
        used_at=row.used_at,
    )


def record_use(connection: Connection, secret: str, now: datetime) -> None:
    """Store the use of a session; the caller does so once per `USE_PRECISION`."""
    connection.execute(update(_table).where(_c.digest == digest_secret(secret)).values(used_at=now))


def list_own_sessions(
    connection: Connection, principal: str, secret: str, now: datetime
) -> list[OwnSession]:
    """Return the sessions of a principal, newest first; the one with the secret is current."""
    query = select(_table).where(_c.principal == principal, _c.expires_at > now)
    rows = connection.execute(query.order_by(_c.begun_at.desc(), _c.digest))
    return [
        OwnSession(
            row.id,
            row.digest == digest_secret(secret),
            row.begun_at,
            row.used_at,
            row.expires_at,
            SessionOrigin(row.address, row.browser),
        )
        for row in rows
    ]


def end_own_session(connection: Connection, principal: str, id_: str) -> bool:
    """End a session of a principal by its ID, and return whether there was one."""
    found = delete(_table).where(_c.principal == principal, _c.id == id_)
    return connection.execute(found).rowcount > 0


def end_principal_sessions(
    connection: Connection,
    principal: str,
    *,
    but: str | None = None,
    now: datetime | None = None,
) -> int:
    """End all sessions of a principal, but that with this secret; return their number.

    With `now`, sessions that have expired by then are neither ended nor counted.
    """
    ended = delete(_table).where(_c.principal == principal)
    if now is not None:
        ended = ended.where(_c.expires_at > now)
    if but is not None:
        ended = ended.where(_c.digest != digest_secret(but))
    return connection.execute(ended).rowcount


def claim_check(connection: Connection, secret: str, now: datetime) -> bool:
    """Return whether the caller is to check a due session; others are to wait for `_CLAIMED`.

    A refresh token may be usable once only, so that two checks at a time would end the session.
    """
    is_due = (_c.digest == digest_secret(secret), _c.check_at <= now)
    change = update(_table).where(*is_due).values(check_at=now + _CLAIMED)
    return connection.execute(change).rowcount == 1


def renew_session(connection: Connection, secret: str, session: ConsoleSession) -> None:
    """Store the result of a check; the end of the session stays the same."""
    values = {"name": session.name, "role": session.role, **_describe_check(session)}
    connection.execute(update(_table).where(_c.digest == digest_secret(secret)).values(values))


def _describe_check(session: ConsoleSession) -> dict[str, object]:
    return {
        "sealed_grant": session.sealed_grant,
        "check_at": session.check_at,
        "valid_until": session.valid_until,
    }


def end_issuer_sessions(
    connection: Connection, subject: str | None, sid: str | None, before: datetime
) -> int:
    """End sessions that the issuer ended, and return their number.

    Those are the session with the ID `sid` there; without one, or for sessions whose ID the issuer
    did not name, all of the subject that began before a time.
    """
    conditions = []
    if sid is not None:
        conditions.append(_c.sid == sid)
    if subject is not None:
        whose = and_(_c.principal == f"oidc:{subject}", _c.begun_at <= before)
        conditions.append(whose if sid is None else and_(whose, _c.sid.is_(None)))
    is_issuers = _c.principal.startswith("oidc:", autoescape=True)
    return connection.execute(delete(_table).where(is_issuers, or_(*conditions))).rowcount


def end_session(connection: Connection, secret: str) -> None:
    """End the session of a cookie, if there is one."""
    connection.execute(delete(_table).where(_c.digest == digest_secret(secret)))


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

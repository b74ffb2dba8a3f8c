"""Recheck of console sessions with their OpenID Connect issuer.

A session is due for a recheck at its `check_at`. One request claims the recheck, and has the issuer
confirm the session with its refresh token (`OidcSignIn.check`). Without a refresh token, only the
browser can do that, by a silent sign-in. While the issuer is unavailable, the session continues
until its `valid_until`.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import structlog
from sqlalchemy import Connection

from tocsin.clock import Clock
from tocsin.credentials.console_sessions import ConsoleSession, claim_check, renew_session
from tocsin.credentials.oidc_discovery import IssuerUnavailable
from tocsin.credentials.oidc_sign_in import OidcSignIn
from tocsin.errors import TocsinError
from tocsin.store import Database

_POSTPONED = timedelta(minutes=1)
_log = structlog.get_logger()


class CheckRequired(TocsinError):  # noqa: N818 - a state that leads to the issuer
    """The issuer has to confirm the session, in the browser."""


class SessionUnconfirmed(TocsinError):  # noqa: N818 - a state that leads to the sign-in form
    """The session is not valid without a confirmation that the issuer has not given."""


async def recheck_session(
    database: Database,
    oidc: OidcSignIn | None,
    session: ConsoleSession,
    secret: str,
    clock: Clock,
    *,
    in_browser: bool,
) -> ConsoleSession:
    """Return a due session as its issuer describes it now.

    With `in_browser`, the request can be redirected to the issuer: raises CheckRequired if the
    session has no refresh token. Raises SessionUnconfirmed if the issuer could not be asked in
    time, and NoLongerSignedIn or AccessDeniedError if the session must end.
    """
    if oidc is None:
        raise SessionUnconfirmed("the issuer of this session is no longer configured")
    now = clock.now()
    if session.sealed_grant is None:
        if in_browser:
            raise CheckRequired("the browser must renew the session at the issuer")
    elif await database.write(claim_check, secret, now):
        try:
            checked = await oidc.check(session)
        except IssuerUnavailable as error:
            _log.warning("console session not checked", reason=str(error))
        else:
            await database.write(renew_session, secret, checked)
            if checked.sealed_grant:
                return checked
            return await recheck_session(
                database, oidc, checked, secret, clock, in_browser=in_browser
            )
    if session.is_overdue(now):
        raise SessionUnconfirmed("the issuer did not confirm the session in time")
    return session


def postpone_check(
    connection: Connection, secret: str, session: ConsoleSession, now: datetime
) -> None:
    """Postpone a recheck while the issuer is unavailable."""
    renew_session(connection, secret, replace(session, check_at=now + _POSTPONED))

"""One-time links that sign an admin in to the console."""

from __future__ import annotations

import secrets
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Connection, delete, insert, select

from tocsin.credentials.admins import check_name
from tocsin.credentials.random_secrets import digest_secret
from tocsin.errors import OperatorError
from tocsin.store.tables import sign_in_links

SIGN_IN_LINK = "/sign-in/link"
"""Path of the page that redeems a link."""
_LONGEST_LIFE = timedelta(hours=1)


def issue_sign_in_link(
    connection: Connection, *, url: str, name: str, expires_in: timedelta, now: datetime
) -> str:
    """Return a link for the admin `name` to the console at `url`.

    The code is in the fragment, which browsers send to no server: it is in no log and no `Referer`.
    """
    if not timedelta(seconds=1) <= expires_in <= _LONGEST_LIFE:
        raise OperatorError(
            f"the lifetime of a sign-in link must be from 1s to 1h; found {expires_in}"
        )
    check_name(name)
    code = secrets.token_urlsafe(32)
    row = {"digest": digest_secret(code), "name": name, "expires_at": now + expires_in}
    connection.execute(delete(sign_in_links).where(sign_in_links.c.expires_at <= now))
    connection.execute(insert(sign_in_links).values(row))
    return f"{url}{SIGN_IN_LINK}#{code}"


def is_redeemable(connection: Connection, code: str, now: datetime) -> bool:
    """Return whether the code of a link is valid; changes nothing."""
    found = select(sign_in_links.c.name).where(*_is_valid(code, now))
    return connection.scalar(found) is not None


def redeem_sign_in_link(connection: Connection, code: str, now: datetime) -> str | None:
    """Return the admin of a valid code, which is valid no more; None for any other code."""
    used = delete(sign_in_links).where(*_is_valid(code, now)).returning(sign_in_links.c.name)
    name: str | None = connection.scalar(used)
    return name


def _is_valid(code: str, now: datetime) -> tuple[ColumnElement[bool], ...]:
    return sign_in_links.c.digest == digest_secret(code), sign_in_links.c.expires_at > now

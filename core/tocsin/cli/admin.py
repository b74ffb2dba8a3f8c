"""`tocsin admin`: admin tokens and signing keys."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Annotated, TypeVar

import typer
from pydantic import TypeAdapter, ValidationError
from sqlalchemy import Connection

from tocsin.cli.database import record, run_on_database
from tocsin.cli.output import AsJson, print_value
from tocsin.clock import Clock, SystemClock
from tocsin.credentials import (
    Admins,
    Vault,
    forget_lost_keys,
    issue_sign_in_link,
    open_proven_vault,
    open_tokens,
    open_vault,
)
from tocsin.errors import OperatorError
from tocsin.fields import Duration
from tocsin.settings import load_settings
from tocsin.store import Database

T = TypeVar("T")

app = typer.Typer(no_args_is_help=True, help="Manage admin tokens, sign-in links and signing keys.")


@app.command()
def token(
    name: Annotated[
        str,
        typer.Option(
            help="Name of the admin, shown in the audit log and as `created_by` of objects that "
            "you create with the token."
        ),
    ] = "admin",
    expires_in: Annotated[
        str, typer.Option(help="How long the token is valid, such as 30m or 7d. Maximum: 365d.")
    ] = "12h",
    as_json: AsJson = False,
) -> None:
    """Print a new admin token.

    Commands such as `tocsin keys create` read the token from TOCSIN_ADMIN_TOKEN.
    """
    lifetime = _parse(expires_in)

    def issue(connection: Connection, vault: Vault, clock: Clock) -> str:
        details = {"expires_in": expires_in}
        record(
            connection, clock.now(), "admin.issue-token", target=f"admin:{name}", details=details
        )
        return Admins(vault, clock).issue(connection, name=name, expires_in=lifetime)

    issued = _write(issue, is_proven=True)
    print_value("token", issued, as_json=as_json)


@app.command("sign-in-link")
def sign_in_link(
    name: Annotated[
        str, typer.Option(help="Name of the admin, shown in the console and the audit log.")
    ] = "admin",
    expires_in: Annotated[
        str, typer.Option(help="How long the link is valid, such as 30m. Maximum: 1h.")
    ] = "10m",
    as_json: AsJson = False,
) -> None:
    """Print a one-time link for signing in to the console."""
    lifetime, url = _parse(expires_in), load_settings().public_url

    def issue(connection: Connection, _vault: Vault, clock: Clock) -> str:
        now, details = clock.now(), {"expires_in": expires_in}
        record(connection, now, "admin.issue-sign-in-link", target=f"admin:{name}", details=details)
        return issue_sign_in_link(connection, url=url, name=name, expires_in=lifetime, now=now)

    link = _write(issue, is_proven=True)
    print_value("link", link, as_json=as_json)


@app.command("revoke-all")
def revoke_all() -> None:
    """Revoke all admin tokens, links and console sessions.

    Revokes both sign-in links and links for adding passkeys. Takes effect immediately on every
    node. Tokens from an OpenID Connect issuer stay valid.
    """

    def revoke(connection: Connection, vault: Vault, clock: Clock) -> None:
        record(connection, clock.now(), "admin.revoke-all")
        Admins(vault, clock).revoke_all(connection)

    _write(revoke)


@app.command("rotate-signing-keys")
def rotate_signing_keys() -> None:
    """Replace the keys that sign access tokens.

    Use this command if a key might have leaked. All access tokens stop working immediately, on
    every node, and API clients must request new ones. Routine rotation is automatic and does not
    revoke tokens.
    """
    settings = load_settings()

    def rotate(connection: Connection, vault: Vault, clock: Clock) -> None:
        details = {"lost_encryption_key": forget_lost_keys(connection, vault)}
        record(connection, clock.now(), "signing-keys.rotate", details=details)
        open_tokens(settings, vault, clock).replace_keys(connection)

    _write(rotate)


def _write(work: Callable[[Connection, Vault, Clock], T], *, is_proven: bool = False) -> T:
    """Run `work` and its audit entry in one transaction, and return its result.

    Checks the encryption key against the database only if `is_proven`. A lost key is replaced
    without this check.
    """
    settings = load_settings()

    async def run(database: Database) -> T:
        if is_proven:
            vault = await open_proven_vault(settings, database)
        else:
            vault = open_vault(settings)
        return await database.write(work, vault, SystemClock())

    return run_on_database(settings, run)


def _parse(text: str) -> timedelta:
    adapter: TypeAdapter[timedelta] = TypeAdapter(Duration)
    try:
        return adapter.validate_python(text)
    except ValidationError as error:
        reason = error.errors()[0]["msg"]
        raise OperatorError(f"--expires-in: found {text!r}; {reason}") from None

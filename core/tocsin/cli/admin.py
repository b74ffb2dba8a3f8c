"""`tocsin admin`: who may administer."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Annotated, TypeVar

import typer
from pydantic import TypeAdapter, ValidationError
from sqlalchemy import Connection

from tocsin.cli.database import record, run_on_database
from tocsin.clock import Clock, SystemClock
from tocsin.credentials import Admins, Vault, open_proven_vault, open_tokens, open_vault
from tocsin.errors import OperatorError
from tocsin.fields import Duration
from tocsin.settings import load_settings
from tocsin.store import Database

T = TypeVar("T")

app = typer.Typer(no_args_is_help=True, help="Who may administer.")


@app.command()
def token(
    name: Annotated[str, typer.Option(help="Who it is for; it stands in `created_by`.")] = "admin",
    expires_in: Annotated[str, typer.Option(help="How long it lives, such as 30m or 7d.")] = "12h",
) -> None:
    """Print a bearer token for the admin endpoints on standard output, and nothing else."""
    lifetime = _parse(expires_in)

    def issue(connection: Connection, vault: Vault, clock: Clock) -> str:
        details = {"expires_in": expires_in}
        record(
            connection, clock.now(), "admin.issue-token", target=f"admin:{name}", details=details
        )
        return Admins(vault, clock).issue(connection, name=name, expires_in=lifetime)

    print(_write(issue, is_proven=True))


@app.command("revoke-all")
def revoke_all() -> None:
    """End every admin token and every session of the console at once, on every node.

    Tokens of an OpenID Connect issuer stay.
    """

    def revoke(connection: Connection, vault: Vault, clock: Clock) -> None:
        record(connection, clock.now(), "admin.revoke-all")
        Admins(vault, clock).revoke_all(connection)

    _write(revoke)


@app.command("rotate-signing-keys")
def rotate_signing_keys() -> None:
    """End every access token at once, on every node; clients fetch new ones, newly signed.

    For when a key may have leaked: by themselves the keys rotate in time, and no token ends.
    """
    settings = load_settings()

    def rotate(connection: Connection, vault: Vault, clock: Clock) -> None:
        record(connection, clock.now(), "signing-keys.rotate")
        open_tokens(settings, vault, clock).replace_keys(connection)

    _write(rotate)


def _write(work: Callable[[Connection, Vault, Clock], T], *, is_proven: bool = False) -> T:
    """Return what `work` returns, done in one transaction with its audit entry.

    Unless `is_proven`, it is not asked whether the encryption key is the one before: this is how
    it is replaced.
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

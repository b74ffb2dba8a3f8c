"""`tocsin admin`: who may administer."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

import typer
from pydantic import TypeAdapter, ValidationError

from tocsin.cli.existing import run_on_database
from tocsin.clock import SystemClock
from tocsin.credentials import Admins, open_vault
from tocsin.errors import OperatorError
from tocsin.fields import Duration
from tocsin.settings import load_settings
from tocsin.store import Database

app = typer.Typer(no_args_is_help=True, help="Who may administer.")


@app.callback()
def _root() -> None:
    pass


@app.command()
def token(
    name: Annotated[str, typer.Option(help="Who it is for; it stands in `created_by`.")] = "admin",
    expires_in: Annotated[str, typer.Option(help="How long it lives, such as 30m or 7d.")] = "12h",
) -> None:
    """Print a bearer token for the admin endpoints on standard output, and nothing else."""
    settings = load_settings()
    lifetime = _parse(expires_in)

    async def issue(database: Database) -> str:
        admins = Admins(open_vault(settings), SystemClock())
        return await database.write(admins.issue, name=name, expires_in=lifetime)

    print(run_on_database(settings, issue))


def _parse(text: str) -> timedelta:
    adapter: TypeAdapter[timedelta] = TypeAdapter(Duration)
    try:
        return adapter.validate_python(text)
    except ValidationError as error:
        reason = error.errors()[0]["msg"]
        raise OperatorError(f"--expires-in: found {text!r}; {reason}") from None

"""`tocsin quarantine`: records that could not be read."""

from __future__ import annotations

from typing import Annotated

import typer

from tocsin.cli.existing import run_on_database
from tocsin.cli.output import AsJson, print_records
from tocsin.cli.providers import require_known
from tocsin.incidents import list_quarantine
from tocsin.settings import load_settings


def quarantine(
    provider: Annotated[str | None, typer.Option(help="Only this provider.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="How many records.")] = 50,
    as_json: AsJson = False,
) -> None:
    """List the newest records that could not be read, with the reason and where they stand."""
    settings = load_settings()
    if provider is not None:
        require_known(settings, provider)
    records = run_on_database(
        settings, lambda database: database.read(list_quarantine, provider, limit)
    )
    print_records(records, as_json=as_json)

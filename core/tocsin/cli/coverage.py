"""`tocsin coverage`: what was read of each source, and what was not."""

from __future__ import annotations

from typing import Annotated

import typer

from tocsin.cli.existing import run_on_database
from tocsin.cli.output import AsJson, print_records
from tocsin.cli.providers import require_known
from tocsin.incidents import list_coverage
from tocsin.settings import load_settings


def coverage(
    provider: Annotated[str | None, typer.Option(help="Only this provider.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="How many rows.")] = 50,
    as_json: AsJson = False,
) -> None:
    """List the newest stretches of the ledger: what was read, what was lost, what failed."""
    settings = load_settings()
    if provider is not None:
        require_known(settings, provider)
    records = run_on_database(
        settings, lambda database: database.read(list_coverage, provider, limit)
    )
    print_records(records, as_json=as_json)

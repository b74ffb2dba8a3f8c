"""`tocsin quarantine`: records that could not be parsed."""

from __future__ import annotations

from typing import Annotated

import typer

from tocsin.cli.database import run_on_database
from tocsin.cli.output import AsJson, Columns, Wide, print_record, print_records
from tocsin.cli.providers import require_known
from tocsin.cli.service_api import AdminToken, ApiUrl, admin_path, run_on_api
from tocsin.incidents import list_quarantine
from tocsin.settings import load_settings

app = typer.Typer(help="List and retry records that could not be parsed.")

_COLUMNS = Columns(
    (
        *("provider", "source", "location", "reason", "content", "created_at", "id"),
        *("retried_at", "retried_by"),
    ),
    brief=("id", "provider", "created_at", "location", "reason"),
)
_RETRY = ("id", "provider", "received", "new", "changed", "rejected")


@app.callback(invoke_without_command=True)
def quarantine(
    context: typer.Context,
    provider: Annotated[str | None, typer.Option(help="Only records from this provider.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="Maximum number of records.")] = 50,
    as_json: AsJson = False,
    wide: Wide = False,
) -> None:
    """List the newest records that could not be parsed.

    Shows where each record is in its source, and why it could not be parsed.
    """
    if context.invoked_subcommand is not None:
        return
    settings = load_settings()
    if provider is not None:
        require_known(settings, provider)
    page = run_on_database(
        settings, lambda database: database.read(list_quarantine, provider, limit)
    )
    print_records(page.records, _COLUMNS, as_json=as_json, wide=wide)


@app.command()
def retry(
    record: Annotated[int, typer.Argument(metavar="ID", min=1, help="ID of the record.")],
    url: ApiUrl = None,
    token: AdminToken = None,
    as_json: AsJson = False,
) -> None:
    """Retry a pushed record after a fix.

    Maps the stored request with the provider's present settings, and stores the incidents. If the
    request still cannot be parsed, nothing changes, and the exit status is 2.
    """
    path = admin_path("quarantine", str(record), "retry")
    answer = run_on_api(url, token, lambda api: api.call("POST", path))
    print_record(answer, _RETRY, as_json=as_json)

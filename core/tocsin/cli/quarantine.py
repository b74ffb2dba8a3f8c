"""`tocsin quarantine`: records that could not be parsed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from tocsin.cli.database import run_on_database
from tocsin.cli.output import AsJson, Columns, Wide, print_record, print_records
from tocsin.cli.providers import require_known
from tocsin.cli.service_api import AdminToken, ApiUrl, ServiceApi, admin_path, run_on_api
from tocsin.errors import OperatorError
from tocsin.incidents import list_quarantine
from tocsin.settings import load_settings

app = typer.Typer(help="List and retry records that could not be parsed.")

_COLUMNS = Columns(
    (
        *("provider", "source", "location", "reason", "content", "created_at", "id"),
        *("retried_at", "retried_by", "retry_obstacle"),
    ),
    brief=("id", "provider", "created_at", "location", "reason"),
)
_RESULTS = Columns(("id", "outcome"))
MAX_RETRIED = 50
"""The most records of one request, as in the API."""
RETRIED = "retried"
"""The outcome of a successful retry, as in the API."""
_RETRY = ("id", "provider", "received", "new", "changed", "rejected", "records")


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
    records: Annotated[list[int], typer.Argument(metavar="ID...", min=1, help="IDs of records.")],
    url: ApiUrl = None,
    token: AdminToken = None,
    as_json: AsJson = False,
) -> None:
    """Retry pushed records after a fix.

    Maps the stored requests with the provider's present settings, and stores the incidents. If a
    record still cannot be parsed, nothing changes for it, and the exit status is 2. Several records
    are retried from the oldest to the newest.
    """
    if len(records) == 1:
        path = admin_path("quarantine", str(records[0]), "retry")
        answer = run_on_api(url, token, lambda api: api.call("POST", path))
        print_record(answer, _RETRY, as_json=as_json)
        return
    chosen = sorted(set(records))
    results, failure = run_on_api(url, token, lambda api: _retry_several(api, chosen))
    retried = [result for result in results if result["outcome"] == RETRIED]
    if as_json:
        print_records(results, _RESULTS, as_json=True)
    elif retried:
        print_records(retried, _RESULTS, as_json=False)
    if len(retried) < len(chosen):
        refused = (each for each in results if each["outcome"] != RETRIED)
        reasons = [f"{each['id']}: {each['detail'] or 'not found'}" for each in refused]
        if failure is not None:
            reasons.append(str(failure))
        summary = f"retried {len(retried)} of {len(chosen)} records"
        raise OperatorError("\n".join([*reasons, summary]))


async def _retry_several(
    api: ServiceApi, records: Sequence[int]
) -> tuple[list[dict[str, Any]], OperatorError | None]:
    """Return the results, and the error that prevented further ones if there is one."""
    path, results = admin_path("quarantine-retries"), list[dict[str, Any]]()
    for start in range(0, len(records), MAX_RETRIED):
        chosen = records[start : start + MAX_RETRIED]
        try:
            results += (await api.call("POST", path, body={"records": chosen}))["results"]
        except OperatorError as error:
            return results, error
    return results, None

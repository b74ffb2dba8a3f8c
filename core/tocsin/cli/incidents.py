"""`tocsin incidents`: incidents of a running service."""

from __future__ import annotations

from typing import Annotated

import typer

from tocsin.cli.options import choice_option
from tocsin.cli.output import AsJson, Columns, Wide, print_record, print_records
from tocsin.cli.service_api import ApiKey, ApiUrl, Limit, run_with_key
from tocsin.model import IncidentStatus, Severity

app = typer.Typer(no_args_is_help=True, help="List and show incidents of a running service.")

_PATH = "/api/v1/incidents"
_COLUMNS = Columns(
    (
        *("number", "provider", "external_id", "external_number", "severity", "status", "title"),
        *("occurred_at", "created_at", "updated_at", "alert_count", "url"),
    ),
    brief=("number", "severity", "status", "provider", "occurred_at", "title"),
)
_DETAILS = (
    *_COLUMNS.every,
    *("description", "raw_severity", "severity_assumed", "raw_status", "merged_into"),
    *("source_url", "techniques", "tactics", "entities"),
)


@app.command("list")
def list_all(
    *,
    severity: Annotated[
        Severity | None, choice_option(Severity, help="Filter by severity.")
    ] = None,
    status: Annotated[
        IncidentStatus | None, choice_option(IncidentStatus, help="Filter by status.")
    ] = None,
    timespan: Annotated[
        str | None,
        typer.Option(
            help="Only incidents that changed within this ISO 8601 duration, such as PT4H."
        ),
    ] = None,
    limit: Limit = 50,
    url: ApiUrl = None,
    api_key: ApiKey = None,
    as_json: AsJson = False,
    wide: Wide = False,
) -> None:
    """List incidents, most recently changed first.

    Requires an API key with the scope `incidents:read`.
    """
    records = run_with_key(
        url,
        api_key,
        lambda api: api.collect(
            _PATH, "incidents", limit=limit, severity=severity, status=status, timespan=timespan
        ),
    )
    print_records(records, _COLUMNS, as_json=as_json, wide=wide)


@app.command()
def show(
    number: Annotated[
        int, typer.Argument(metavar="NUMBER", min=1, max=10**18 - 1, help="Incident number.")
    ],
    url: ApiUrl = None,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Show an incident with its entities."""
    record = run_with_key(url, api_key, lambda api: api.call("GET", f"{_PATH}/{number}"))
    entities = [f"{entity['kind']}:{entity['value']}" for entity in record["entities"]]
    shown = record if as_json else record | {"entities": entities}
    print_record(shown, _DETAILS, as_json=as_json)

"""`tocsin incidents`: incidents of a running service."""

from __future__ import annotations

from typing import Annotated

import typer

from tocsin.cli.options import choice_option
from tocsin.cli.output import AsJson, Columns, Wide, print_record, print_records
from tocsin.cli.service_api import ApiKey, ApiUrl, Limit, run_with_key
from tocsin.cli.triage import (
    INCIDENTS_PATH,
    TRIAGE_DETAILS,
    TRIAGED,
    Number,
    add_commands,
    add_triage_columns,
)
from tocsin.model import DispositionFilter, IncidentStatus, Severity, StatusMismatch

app = typer.Typer(no_args_is_help=True, help="List, show and triage incidents.")

_COLUMNS = Columns(
    (
        *("number", "provider", "external_id", "external_number", "severity", "status", "title"),
        *("occurred_at", "created_at", "updated_at", "alert_count", "url"),
        *TRIAGED,
    ),
    brief=("number", "severity", "status", "assignee", "occurred_at", "title"),
)
_ALERTS = Columns(
    ("external_id", "severity", "occurred_at", "title", "rule", "flow", "record"),
    brief=("external_id", "severity", "occurred_at", "title", "rule"),
)
_DETECTIONS = Columns(
    (
        *("rule", "title", "provider", "incident_count", "false_positive_ratio"),
        *("latest_incident", "dispositions"),
    ),
    brief=("rule", "title", "provider", "incident_count", "false_positive_ratio"),
)
_DETAILS = (
    *_COLUMNS.every,
    *("description", "raw_severity", "severity_assumed", "raw_status", "merged_into"),
    *("source_url", "techniques", "tactics", "entities"),
    *TRIAGE_DETAILS,
)


@app.command("list")
def list_all(
    *,
    severity: Annotated[
        Severity | None, choice_option(Severity, help="Only incidents with this severity.")
    ] = None,
    status: Annotated[
        IncidentStatus | None,
        choice_option(IncidentStatus, help="Only incidents with this status."),
    ] = None,
    timespan: Annotated[
        str | None,
        typer.Option(
            help="Only incidents that changed recently. Give an ISO 8601 duration, such as PT4H "
            "for the last 4 hours."
        ),
    ] = None,
    assignee: Annotated[
        str | None,
        typer.Option(
            help="Only incidents that are assigned to this person. For unassigned incidents, use "
            "`none`."
        ),
    ] = None,
    disposition: Annotated[
        DispositionFilter | None,
        choice_option(
            DispositionFilter,
            help="Only incidents with this disposition. For incidents without one, use `none`.",
        ),
    ] = None,
    acknowledged: Annotated[
        bool | None,
        typer.Option(
            "--acknowledged/--unacknowledged",
            help="Only acknowledged or only unacknowledged incidents.",
        ),
    ] = None,
    tag: Annotated[str | None, typer.Option(help="Only incidents with this tag.")] = None,
    watcher: Annotated[str | None, typer.Option(help="Only incidents with this watcher.")] = None,
    provider: Annotated[str | None, typer.Option(help="Only incidents from this provider.")] = None,
    title: Annotated[
        str | None, typer.Option(help="Only incidents with this text in the title.")
    ] = None,
    entity: Annotated[
        str | None, typer.Option(help="Only incidents with an entity that has this value.")
    ] = None,
    technique: Annotated[
        str | None,
        typer.Option(
            help="Only incidents with this ATT&CK technique, such as T1110, or one of its "
            "sub-techniques."
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
            INCIDENTS_PATH,
            "incidents",
            limit=limit,
            severity=severity,
            status=status,
            timespan=timespan,
            assignee=assignee,
            disposition=disposition,
            acknowledged=None if acknowledged is None else str(acknowledged).lower(),
            tag=tag,
            watcher=watcher,
            provider=provider,
            title=title,
            entity=entity,
            technique=technique,
        ),
    )
    shown = records if as_json else [add_triage_columns(each, TRIAGED) for each in records]
    print_records(shown, _COLUMNS, as_json=as_json, wide=wide)


@app.command()
def show(
    number: Number,
    url: ApiUrl = None,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Show an incident with its entities and triage.

    Requires an API key with the scope `incidents:read`.
    """
    record = run_with_key(url, api_key, lambda api: api.call("GET", f"{INCIDENTS_PATH}/{number}"))
    entities = [f"{entity['kind']}:{entity['value']}" for entity in record["entities"]]
    shown = record if as_json else add_triage_columns(record, _DETAILS) | {"entities": entities}
    print_record(shown, _DETAILS, as_json=as_json)


@app.command()
def alerts(
    number: Number,
    *,
    limit: Limit = 50,
    url: ApiUrl = None,
    api_key: ApiKey = None,
    as_json: AsJson = False,
    wide: Wide = False,
) -> None:
    """List the alerts of an incident, latest first.

    On a terminal, add --json or --wide to also show each alert's network flow and the record that
    the SIEM returned. Requires an API key with the scope `incidents:read`.
    """
    path = f"{INCIDENTS_PATH}/{number}/alerts"
    records = run_with_key(url, api_key, lambda api: api.collect(path, "alerts", limit=limit))
    print_records(records, _ALERTS, as_json=as_json, wide=wide)


@app.command()
def detections(
    *,
    timespan: Annotated[
        str,
        typer.Option(
            help="How far back to count dispositions. Give an ISO 8601 duration, such as P30D for "
            "the last 30 days."
        ),
    ] = "P90D",
    provider: Annotated[str | None, typer.Option(help="Only incidents from this provider.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=200, help="Maximum number of detections.")] = 50,
    url: ApiUrl = None,
    api_key: ApiKey = None,
    as_json: AsJson = False,
    wide: Wide = False,
) -> None:
    """List detection rules by number of false positives.

    Counts only incidents that have a disposition. Alerts without a rule are listed by their title.
    Requires an API key with the scope `incidents:read`.
    """
    path = f"{INCIDENTS_PATH}/detections"
    query = {"timespan": timespan, "provider": provider, "limit": limit}
    answer = run_with_key(url, api_key, lambda api: api.call("GET", path, query=query))
    print_records(answer["detections"], _DETECTIONS, as_json=as_json, wide=wide)


_MISMATCHES = Columns(
    (
        *("mismatch", "incident_number", "incident_status", "destination", "remote_id", "status"),
        *("resolution", "is_open", "status_changed_at", "status_read_at", "remote_url"),
    ),
    brief=("mismatch", "incident_number", "incident_status", "destination", "remote_id", "status"),
)


@app.command()
def drift(
    *,
    mismatch: Annotated[
        StatusMismatch | None, choice_option(StatusMismatch, help="Only mismatches of this kind.")
    ] = None,
    destination: Annotated[
        str | None, typer.Option(help="Only tickets and other objects of this destination.")
    ] = None,
    limit: Limit = 50,
    url: ApiUrl = None,
    api_key: ApiKey = None,
    as_json: AsJson = False,
    wide: Wide = False,
) -> None:
    """List tickets whose status differs from their incident's.

    Also lists other remote objects, such as cases.

    Requires an API key with the scope `incidents:read`.
    """
    records = run_with_key(
        url,
        api_key,
        lambda api: api.collect(
            "/api/v1/status-mismatches",
            "mismatches",
            limit=limit,
            mismatch=mismatch,
            destination=destination,
        ),
    )
    print_records(records, _MISMATCHES, as_json=as_json, wide=wide)


add_commands(app)

"""`tocsin schedules`: recurring investigations of a running service."""

from __future__ import annotations

import sys
from collections.abc import Callable
from inspect import Parameter, signature
from typing import Annotated, Any

import typer

from tocsin.cli.admin_api import AdminToken, ApiUrl, Limit, admin_path, run_on_api
from tocsin.cli.output import AsJson, print_text
from tocsin.cli.responses import print_columns
from tocsin.recurrence import ScheduleDefinition

app = typer.Typer(
    no_args_is_help=True, help="Manage recurring investigations of a running service."
)

_COLUMNS = (
    "id",
    "name",
    "status",
    "disabled_reason",
    "cron",
    "interval",
    "timezone",
    "next_run_at",
    "last_run_at",
    "last_status",
    "consecutive_failures",
)
_DETAILS = (*_COLUMNS, "upcoming", "query", "persona", "provider", "tags", "last_error", "url")
_RUN = (
    *("id", "fire_at", "state", "trigger", "count", "duration_ms"),
    *("session_id", "cause", "reason"),
)
_UPCOMING = ("due_at", "schedule_name", "schedule_id")

Id = Annotated[str, typer.Argument(metavar="ID", help="ID of the schedule.")]


def _add_definition_options(command: Callable[..., None]) -> Callable[..., None]:
    """Replace the `**given` of a command by an option for each member of a definition."""
    own = [
        parameter
        for parameter in signature(command, eval_str=True).parameters.values()
        if parameter.kind is not parameter.VAR_KEYWORD
    ]
    given = [_option(name) for name in ScheduleDefinition.model_fields]
    parameters = sorted([*own, *given], key=lambda option: option.default is not Parameter.empty)
    parameters = [parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in parameters]
    command.__signature__ = signature(command).replace(parameters=parameters)  # type: ignore[attr-defined]
    command.__annotations__ |= {option.name: option.annotation for option in given}
    del command.__annotations__["given"]
    return command


def _option(name: str) -> Parameter:
    description = ScheduleDefinition.model_fields[name].description or ""
    kind: Any = Annotated[str | None, typer.Option(help=description)]
    if name == "failure_limit":
        kind = Annotated[int | None, typer.Option(help=description)]
    elif name == "tags":
        kind = Annotated[
            list[str] | None,
            typer.Option("--tag", help=f"{description.removesuffix('.')} (repeatable)."),
        ]
    return Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=kind)


@app.command("list")
def list_all(
    *,
    status: Annotated[
        str | None, typer.Option(help="Filter by status: active, disabled or deleted.")
    ] = None,
    tag: Annotated[str | None, typer.Option(help="Filter by tag.")] = None,
    limit: Limit = 50,
    url: ApiUrl = None,
    token: AdminToken = None,
    as_json: AsJson = False,
) -> None:
    """List schedules by name."""
    path = admin_path("schedules")
    records = run_on_api(
        url,
        token,
        lambda api: api.collect(path, "schedules", limit=limit, status=status, tag=tag),
    )
    print_columns(records, _COLUMNS, as_json=as_json)


@app.command()
def show(
    schedule_id: Id, url: ApiUrl = None, token: AdminToken = None, as_json: AsJson = False
) -> None:
    """Show a schedule and its upcoming runs."""
    record = run_on_api(
        url, token, lambda api: api.call("GET", admin_path("schedules", schedule_id))
    )
    print_columns([record], _DETAILS, as_json=as_json)


@app.command()
@_add_definition_options
def create(
    *,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the schedule.")],
    url: ApiUrl = None,
    token: AdminToken = None,
    as_json: AsJson = False,
    **given: Any,
) -> None:
    """Create a schedule and show its upcoming runs.

    Requires --query, and either --cron or --interval.
    """
    body = {"name": name, **given, "tags": given["tags"] or None}
    record = run_on_api(
        url, token, lambda api: api.call("POST", admin_path("schedules"), body=body)
    )
    print_columns([record], _DETAILS, as_json=as_json)


@app.command()
@_add_definition_options
def change(
    *,
    schedule_id: Id,
    url: ApiUrl = None,
    token: AdminToken = None,
    as_json: AsJson = False,
    **given: Any,
) -> None:
    """Change the given settings of a schedule.

    Other settings and the status stay the same.
    """
    path, body = admin_path("schedules", schedule_id), {**given, "tags": given["tags"] or None}
    record = run_on_api(url, token, lambda api: api.call("PATCH", path, body=body))
    print_columns([record], _DETAILS, as_json=as_json)


@app.command()
def run(
    schedule_id: Id, url: ApiUrl = None, token: AdminToken = None, as_json: AsJson = False
) -> None:
    """Run a schedule now, even if it is disabled."""
    path = admin_path("schedules", schedule_id, "run")
    record = run_on_api(url, token, lambda api: api.call("POST", path))
    print_columns([record], _RUN, as_json=as_json)


@app.command()
def enable(
    schedule_id: Id, url: ApiUrl = None, token: AdminToken = None, as_json: AsJson = False
) -> None:
    """Enable a schedule and reset its failure count."""
    path = admin_path("schedules", schedule_id, "enable")
    record = run_on_api(url, token, lambda api: api.call("POST", path))
    print_columns([record], _DETAILS, as_json=as_json)


@app.command()
def disable(
    schedule_id: Id, url: ApiUrl = None, token: AdminToken = None, as_json: AsJson = False
) -> None:
    """Disable a schedule.

    An active run is not interrupted.
    """
    path = admin_path("schedules", schedule_id, "disable")
    record = run_on_api(url, token, lambda api: api.call("POST", path))
    print_columns([record], _COLUMNS, as_json=as_json)


@app.command()
def delete(
    schedule_id: Id, url: ApiUrl = None, token: AdminToken = None, as_json: AsJson = False
) -> None:
    """Delete a schedule that was created over the API.

    Its past runs are kept.
    """
    path = admin_path("schedules", schedule_id)
    record = run_on_api(url, token, lambda api: api.call("DELETE", path))
    print_columns([record], _COLUMNS, as_json=as_json)


@app.command()
def runs(
    *,
    schedule_id: Id,
    state: Annotated[
        str | None, typer.Option(help="Filter by state, such as failed or missed.")
    ] = None,
    limit: Limit = 50,
    url: ApiUrl = None,
    token: AdminToken = None,
    as_json: AsJson = False,
) -> None:
    """List the runs of a schedule, newest first."""
    path = admin_path("schedules", schedule_id, "runs")
    records = run_on_api(
        url, token, lambda api: api.collect(path, "runs", limit=limit, state=state)
    )
    print_columns(records, _RUN, as_json=as_json)


@app.command()
def upcoming(
    within: Annotated[str, typer.Option(help="How far to look ahead, such as 12h or 7d.")] = "1d",
    limit: Annotated[int, typer.Option(min=1, max=200, help="Maximum number of rows.")] = 50,
    url: ApiUrl = None,
    token: AdminToken = None,
    as_json: AsJson = False,
) -> None:
    """List the upcoming runs of all schedules."""
    path, query = admin_path("schedules", "upcoming"), {"within": within, "limit": limit}
    answer = run_on_api(url, token, lambda api: api.call("GET", path, query=query))
    print_columns(answer["upcoming"], _UPCOMING, as_json=as_json)
    if answer["truncated"]:
        print_text(
            f"more runs are due after {answer['until']}; use --limit to see them", file=sys.stderr
        )

"""`tocsin schedules`: recurring investigations of a running service."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from inspect import Parameter, signature
from typing import Annotated, Any

import typer

from tocsin.cli.output import AsJson, Columns, Wide, print_record, print_records, print_text
from tocsin.cli.responses import ResponseMembers
from tocsin.cli.service_api import AdminToken, ApiUrl, Limit, ServiceApi, admin_path, run_on_api
from tocsin.durations import format_duration
from tocsin.errors import OperatorError
from tocsin.recurrence import ScheduleDefinition
from tocsin.validation import suggest_nearest

app = typer.Typer(no_args_is_help=True, help="Manage recurring investigations.")

_COLUMNS = Columns(
    (
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
    ),
    brief=("name", "status", "next_run_at", "last_run_at", "last_status", "disabled_reason"),
)
_DETAILS = (
    *_COLUMNS.every,
    *("upcoming", "query", "persona", "provider", "tags", "last_error", "url"),
)
_RUN = Columns(
    (
        *("id", "fire_at", "state", "trigger", "count", "duration_ms"),
        *("session_id", "cause", "reason"),
    ),
    brief=("id", "fire_at", "state", "trigger", "reason"),
)
_UPCOMING = Columns(("due_at", "schedule_name", "schedule_id"), brief=("due_at", "schedule_name"))

Schedule = Annotated[str, typer.Argument(metavar="SCHEDULE", help="Name or ID of the schedule.")]
_MOST_NAMES = 200  # on one page, to suggest the nearest of
_ID = re.compile(r"sch_[0-9A-Z]{26}")
_NAMED = re.compile(r"`([a-z_]+)`")


def _add_definition_options(
    command: Callable[..., None], *, shows_defaults: bool = False
) -> Callable[..., None]:
    """Replace the `**given` of a command with an option for each member of a definition.

    With `shows_defaults`, the help of each option contains the default of its member.
    """
    own = [
        parameter
        for parameter in signature(command, eval_str=True).parameters.values()
        if parameter.kind is not parameter.VAR_KEYWORD
    ]
    given = [
        _option(name, shows_default=shows_defaults) for name in ScheduleDefinition.model_fields
    ]
    parameters = sorted([*own, *given], key=lambda option: option.default is not Parameter.empty)
    parameters = [parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in parameters]
    command.__signature__ = signature(command).replace(parameters=parameters)  # type: ignore[attr-defined]
    command.__annotations__ |= {option.name: option.annotation for option in given}
    del command.__annotations__["given"]
    return command


def _name_option(named: re.Match[str]) -> str:
    """Return the option for a member that a description names, and any other word unchanged."""
    name = named[1]
    return f"--{name}" if name in ScheduleDefinition.model_fields else named[0]


def _option(name: str, *, shows_default: bool) -> Parameter:
    member = ScheduleDefinition.model_fields[name]
    description = _NAMED.sub(_name_option, member.description or "")
    default = member.default
    if shows_default and isinstance(default, str | timedelta):
        shown = format_duration(default) if isinstance(default, timedelta) else default
        description += f" Default: {shown}."
    kind: Any = Annotated[str | None, typer.Option(help=description)]
    if name == "failure_limit":
        kind = Annotated[int | None, typer.Option(help=description)]
    elif name == "tags":
        kind = Annotated[
            list[str] | None,
            typer.Option("--tag", help="Tag for filtering (repeatable)."),
        ]
    return Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=kind)


@app.command("list")
def list_all(
    *,
    status: Annotated[
        str | None,
        typer.Option(
            help="Only schedules with this status: active, disabled or deleted. "
            "Default: all except deleted."
        ),
    ] = None,
    tag: Annotated[str | None, typer.Option(help="Only schedules with this tag.")] = None,
    limit: Limit = 50,
    url: ApiUrl = None,
    token: AdminToken = None,
    as_json: AsJson = False,
    wide: Wide = False,
) -> None:
    """List schedules by name."""
    path = admin_path("schedules")
    records = run_on_api(
        url,
        token,
        lambda api: api.collect(path, "schedules", limit=limit, status=status, tag=tag),
    )
    print_records(records, _COLUMNS, as_json=as_json, wide=wide)


@app.command()
def show(
    schedule: Schedule, url: ApiUrl = None, token: AdminToken = None, as_json: AsJson = False
) -> None:
    """Show a schedule and its upcoming runs."""
    record = _call(url, token, "GET", schedule)
    print_record(record, _DETAILS, as_json=as_json)


@app.command()
@partial(_add_definition_options, shows_defaults=True)
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
    print_record(record, _DETAILS, as_json=as_json)


@app.command()
@_add_definition_options
def change(
    *,
    schedule: Schedule,
    url: ApiUrl = None,
    token: AdminToken = None,
    as_json: AsJson = False,
    **given: Any,
) -> None:
    """Change a schedule's settings.

    Does not change the status or any settings that you do not specify.
    """
    body = {**given, "tags": given["tags"] or None}
    record = _call(url, token, "PATCH", schedule, body=body)
    print_record(record, _DETAILS, as_json=as_json)


@app.command()
def run(
    schedule: Schedule, url: ApiUrl = None, token: AdminToken = None, as_json: AsJson = False
) -> None:
    """Run a schedule now, even if it is disabled."""
    record = _call(url, token, "POST", schedule, "run")
    print_record(record, _RUN.every, as_json=as_json)


@app.command()
def enable(
    schedule: Schedule, url: ApiUrl = None, token: AdminToken = None, as_json: AsJson = False
) -> None:
    """Enable a schedule and reset its failure count."""
    record = _call(url, token, "POST", schedule, "enable")
    print_record(record, _DETAILS, as_json=as_json)


@app.command()
def disable(
    schedule: Schedule, url: ApiUrl = None, token: AdminToken = None, as_json: AsJson = False
) -> None:
    """Disable a schedule.

    Does not interrupt an active run.
    """
    record = _call(url, token, "POST", schedule, "disable")
    print_record(record, _COLUMNS.every, as_json=as_json)


@app.command()
def delete(
    schedule: Schedule, url: ApiUrl = None, token: AdminToken = None, as_json: AsJson = False
) -> None:
    """Delete a schedule.

    You cannot delete a schedule that plugins.toml defines. The schedule's past runs are kept.
    """
    record = _call(url, token, "DELETE", schedule)
    print_record(record, _COLUMNS.every, as_json=as_json)


@app.command()
def runs(
    *,
    schedule: Schedule,
    state: Annotated[
        str | None, typer.Option(help="Only runs in this state, such as failed or missed.")
    ] = None,
    limit: Limit = 50,
    url: ApiUrl = None,
    token: AdminToken = None,
    as_json: AsJson = False,
    wide: Wide = False,
) -> None:
    """List the runs of a schedule, newest first."""

    async def collect(api: ServiceApi) -> list[dict[str, Any]]:
        path = admin_path("schedules", await _find_id(api, schedule), "runs")
        return await api.collect(path, "runs", limit=limit, state=state)

    records = run_on_api(url, token, collect)
    print_records(records, _RUN, as_json=as_json, wide=wide)


@app.command()
def upcoming(
    *,
    within: Annotated[str, typer.Option(help="How far to look ahead, such as 12h or 7d.")] = "1d",
    limit: Annotated[int, typer.Option(min=1, max=200, help="Maximum number of rows.")] = 50,
    url: ApiUrl = None,
    token: AdminToken = None,
    as_json: AsJson = False,
    wide: Wide = False,
) -> None:
    """List the upcoming runs of all schedules."""
    path, query = admin_path("schedules", "upcoming"), {"within": within, "limit": limit}
    answer = run_on_api(url, token, lambda api: api.call("GET", path, query=query))
    print_records(answer["upcoming"], _UPCOMING, as_json=as_json, wide=wide)
    if answer["truncated"]:
        print_text(
            f"more runs are due after {answer['until']}; use --limit to see them", file=sys.stderr
        )


def _call(
    url: str | None,
    token: str | None,
    method: str,
    schedule: str,
    *path: str,
    body: dict[str, Any] | None = None,
) -> ResponseMembers:
    """Return the response of an endpoint of a schedule, given its name or ID."""

    async def call(api: ServiceApi) -> ResponseMembers:
        schedule_id = await _find_id(api, schedule)
        return await api.call(method, admin_path("schedules", schedule_id, *path), body=body)

    return run_on_api(url, token, call)


async def _find_id(api: ServiceApi, schedule: str) -> str:
    """Return the ID of a schedule; raises OperatorError for an unknown name.

    Finds a deleted schedule only by its ID, because another schedule can have the same name.
    """
    if _ID.fullmatch(schedule):
        return schedule
    page = await api.call("GET", admin_path("schedules"), query={"name": schedule})
    if page["schedules"]:
        return str(page["schedules"][0]["id"])
    page = await api.call("GET", admin_path("schedules"), query={"limit": _MOST_NAMES})
    known = [each["name"] for each in page["schedules"]]
    raise OperatorError(f"no schedule {schedule!r}{suggest_nearest(schedule, known)}")

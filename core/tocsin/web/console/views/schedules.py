"""Schedules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tocsin.credentials import ConsoleRole
from tocsin.model import Persona
from tocsin.recurrence import Overlap
from tocsin.schedules import RunState, ScheduleStatus
from tocsin.web.console.cadence import describe_cadence, format_duration
from tocsin.web.console.forms import Form, to_number
from tocsin.web.console.page_request import PageRequest, select_query
from tocsin.web.console.pages import ConsoleAction, ConsolePage
from tocsin.web.routes import schedules as api
from tocsin.web.routes.providers import list_providers

_LIST, _NEW, _ONE = "/schedules", "/schedules/new", "/schedules/{schedule_id}"
_CHANGE = f"{_ONE}/change"
_TEXTS = (
    "query",
    "persona",
    "provider",
    "cron",
    "interval",
    "timezone",
    "jitter",
    "starts_at",
    "ends_at",
    "timeout",
    "misfire_grace",
    "overlap",
)
_DURATIONS = ("interval", "jitter", "timeout", "misfire_grace")


async def show_schedules(request: PageRequest) -> Mapping[str, Any]:
    """Return one page of the schedules and the runs of the next 24 hours."""
    narrowed, cursor = select_query(request, "status", "tag"), select_query(request, "cursor")
    page = await request.ask(api.list_schedules, None, **narrowed, **cursor)
    return {
        "schedules": [
            {**schedule, "cadence": describe_cadence(schedule)} for schedule in page["schedules"]
        ],
        "total": page["total"],
        "next_cursor": page["next_cursor"],
        "query": narrowed,
        "statuses": list(ScheduleStatus),
        "upcoming": await request.ask(api.list_upcoming_runs, limit="10"),
    }


async def show_schedule(request: PageRequest) -> Mapping[str, Any]:
    """Return a schedule and one page of its runs."""
    schedule = await request.ask(api.get_schedule)
    narrowed, cursor = select_query(request, "state"), select_query(request, "cursor")
    runs = await request.ask(api.list_schedule_runs, None, **narrowed, **cursor)
    lasting = {name: format_duration(schedule[name]) for name in _DURATIONS}
    return {
        "schedule": {**schedule, "cadence": describe_cadence(schedule)},
        "lasting": lasting,
        "runs": runs,
        "query": narrowed,
        "states": list(RunState),
    }


async def show_new(request: PageRequest) -> Mapping[str, Any]:
    """Return the choices in the form for a new schedule."""
    return {**await _choices(request), "written": {}}


async def show_change(request: PageRequest) -> Mapping[str, Any]:
    """Return the form for a schedule, filled with its current values."""
    schedule = await request.ask(api.get_schedule)
    written = {name: "" if schedule[name] is None else str(schedule[name]) for name in _TEXTS}
    written |= {name: format_duration(schedule[name]) for name in _DURATIONS}
    written["failure_limit"] = str(schedule["failure_limit"] or "")
    written["tags"] = " ".join(schedule["tags"])
    return {**await _choices(request), "schedule": schedule, "written": written}


async def _choices(request: PageRequest) -> dict[str, Any]:
    providers = (await request.ask(list_providers))["providers"]
    return {
        "providers": [provider["name"] for provider in providers],
        "personas": list(Persona),
        "overlaps": list(Overlap),
    }


def new_schedule(form: Form) -> Mapping[str, Any]:
    """Build the request body that creates a schedule; empty fields use the defaults."""
    return {name: value for name, value in _definition(form).items() if value is not None} | {
        "name": form.text("name")
    }


def _definition(form: Form) -> dict[str, Any]:
    """Return all members of a definition; None resets a member to its default."""
    members: dict[str, Any] = {name: form.text(name) or None for name in _TEXTS}
    members["failure_limit"] = to_number(form.text("failure_limit")) or None
    members["tags"] = form.text("tags").replace(",", " ").split() or None
    return members


PAGES = (
    ConsolePage(
        path=_LIST,
        view=show_schedules,
        template="schedules.html.j2",
        section="schedules",
        is_live=True,
    ),
    ConsolePage(
        path=_NEW,
        view=show_new,
        template="schedule_new.html.j2",
        section="schedules",
        role=ConsoleRole.OPERATOR,
    ),
    ConsolePage(
        path=_ONE,
        view=show_schedule,
        template="schedule.html.j2",
        section="schedules",
        is_live=True,
    ),
    ConsolePage(
        path=_CHANGE,
        view=show_change,
        template="schedule_change.html.j2",
        section="schedules",
        role=ConsoleRole.OPERATOR,
    ),
)
ACTIONS = (
    ConsoleAction(
        path=_NEW,
        handler=api.create_schedule,
        page=_NEW,
        message="Schedule created.",
        body=new_schedule,
        after="/schedules/{id}",
    ),
    ConsoleAction(
        path=_CHANGE,
        handler=api.update_schedule,
        page=_CHANGE,
        message="Schedule saved.",
        body=_definition,
        after=_ONE,
    ),
    ConsoleAction(
        path=f"{_ONE}/run",
        handler=api.run_schedule,
        page=_ONE,
        message="Run requested. The run starts now or, if one is in progress, when that run ends.",
    ),
    ConsoleAction(
        path=f"{_ONE}/enable",
        handler=api.enable_schedule,
        page=_ONE,
        message="Schedule enabled. Its failure count was reset.",
    ),
    ConsoleAction(
        path=f"{_ONE}/disable",
        handler=api.disable_schedule,
        page=_ONE,
        message="Schedule disabled. A run in progress continues, and waiting runs are skipped.",
    ),
    ConsoleAction(
        path=f"{_ONE}/delete",
        handler=api.delete_schedule,
        page=_ONE,
        message="Schedule deleted. This page still lists its past runs.",
    ),
)

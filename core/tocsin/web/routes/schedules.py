"""Endpoints for schedules and their runs."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection

from tocsin import schedules
from tocsin.clock import isoformat
from tocsin.credentials import ConsoleRole
from tocsin.errors import NameTakenError
from tocsin.model import Json
from tocsin.recurrence import ScheduleDefinition
from tocsin.registry import ManagedBy
from tocsin.schedules import (
    DisabledReason,
    Schedule,
    ScheduleDeletedError,
    ScheduleStatus,
    list_next_runs,
    load_schedule,
    represent_run,
    represent_schedule,
)
from tocsin.web.context import AccessRole, AuditedChange, Endpoint, RequestContext, Response
from tocsin.web.pagination import CompositeCursor, PageCursor, page_response, total_fields
from tocsin.web.parsing import BodyModel, invalid_member, validate
from tocsin.web.record_problems import (
    NO_INVESTIGATOR,
    SCHEDULE_DELETED,
    SCHEDULE_MANAGED,
    SCHEDULE_NAME_TAKEN,
    SCHEDULE_NOT_FOUND,
    SCHEDULE_NOT_STARTED,
    SCHEDULE_REMOVED,
)
from tocsin.web.routes.sessions import require_investigator, require_provider
from tocsin.web.schemas.schedules import (
    LIST,
    RUNS,
    NewSchedule,
    RunList,
    RunQuery,
    ScheduleChange,
    ScheduleDetail,
    ScheduleList,
    ScheduleQuery,
    ScheduleRun,
    UpcomingList,
    UpcomingQuery,
)

_PREFIX = "run_"


def create_schedule(connection: Connection, call: RequestContext) -> Response:
    """Create a schedule and return it with its next fire times."""
    body: NewSchedule = call.body
    _require_future(call, body)
    require_provider(call, body.provider)
    by, now = call.principal.name, call.services.clock.now()
    try:
        made = schedules.create_schedule(
            connection, body.name, body, managed_by=ManagedBy.API, by=by, now=now
        )
    except NameTakenError:
        raise SCHEDULE_NAME_TAKEN.error(name=body.name) from None
    return _respond(call, made, {"name": made.name, **_list_members(body)})


def list_schedules(connection: Connection, call: RequestContext) -> Response:
    """Return one page of schedules, by name."""
    query: ScheduleQuery = call.query
    page = schedules.list_schedules(
        connection,
        limit=query.limit,
        status=query.status,
        tag=query.tag,
        name=query.name,
        after=query.cursor.parts if query.cursor else None,
    )
    items = [represent_schedule(schedule, call.services.public_url) for schedule in page.schedules]
    content = {"schedules": items, "total": page.total}
    return page_response(call, content, CompositeCursor(LIST, page.next) if page.next else None)


def list_upcoming_runs(connection: Connection, call: RequestContext) -> Response:
    """Return the upcoming runs of all schedules, soonest first."""
    query: UpcomingQuery = call.query
    until = call.services.clock.now() + query.within
    found = schedules.list_upcoming(connection, until, query.limit + 1)
    shown, truncated = found[: query.limit], len(found) > query.limit
    upcoming = [
        {"due_at": isoformat(due), "schedule_id": schedule.id, "schedule_name": schedule.name}
        for due, schedule in shown
    ]
    until = shown[-1][0] if truncated else until
    content = {"upcoming": upcoming, "until": isoformat(until), "truncated": truncated}
    return Response(content)


def get_schedule(connection: Connection, call: RequestContext) -> Response:
    """Return a schedule, including a deleted one."""
    return Response(_represent(call, _find(connection, call)))


def update_schedule(connection: Connection, call: RequestContext) -> Response:
    """Update a schedule's definition and return the schedule. Its status does not change."""
    body: ScheduleChange = call.body
    schedule = _find_changeable(connection, call)
    given = {name: getattr(body, name) for name in body.model_fields_set}
    definition = validate(_merge(schedule.document, given), ScheduleDefinition)
    _require_future(call, definition)
    require_provider(call, definition.provider)
    changed = schedules.change_schedule(connection, schedule, definition, call.services.clock.now())
    return _respond(call, changed, _list_members(body), has_changed=changed is not schedule)


def _merge(document: Any, given: dict[str, Any]) -> dict[str, Any]:
    """Return a changed definition; an interval and a cron expression replace each other."""
    for one, other in (("cron", "interval"), ("interval", "cron")):
        if given.get(one) is not None and other not in given:
            given = given | {other: None}
    return {name: value for name, value in {**document, **given}.items() if value is not None}


def delete_schedule(connection: Connection, call: RequestContext) -> Response:
    """Delete a schedule and return it. A run in progress continues."""
    schedule = _find(connection, call, lock=True)
    if schedule.status is ScheduleStatus.DELETED:
        return Response(_represent(call, schedule))
    if not schedule.is_removed:  # what plugins.toml names no more can be changed nowhere else
        _require_managed_here(schedule, "remove")
    deleted = schedules.delete_schedule(connection, schedule, call.services.clock.now())
    return _respond(call, deleted, {"name": deleted.name})


def run_schedule(connection: Connection, call: RequestContext) -> Response:
    """Run a schedule now and return the run. Its result counts toward `consecutive_failures`."""
    require_investigator(call)
    schedule = _find(connection, call, lock=True)
    row = schedules.run_now(connection, schedule, call.principal.name, call.services.clock.now())
    change = AuditedChange(
        target=_target(schedule), details={"run": row["id"], "state": row["state"]}
    )
    return Response(represent_run(row), change=change)


def enable_schedule(connection: Connection, call: RequestContext) -> Response:
    """Enable a schedule, reset its failure count and return the schedule."""
    schedule = _find_living(connection, call)
    if schedule.is_removed:
        raise SCHEDULE_REMOVED.error()
    enabled = schedules.enable_schedule(connection, schedule, call.services.clock.now())
    details: dict[str, Json] = {"reason": schedule.disabled_reason}
    return _respond(call, enabled, details, has_changed=enabled is not schedule)


def disable_schedule(connection: Connection, call: RequestContext) -> Response:
    """Disable a schedule and return it. A run in progress continues."""
    schedule = _find_living(connection, call)
    if not schedule.is_active:
        return Response(_represent(call, schedule))
    now = call.services.clock.now()
    disabled = schedules.disable_schedule(connection, schedule, DisabledReason.MANUAL, now)
    return _respond(call, disabled, {})


def list_schedule_runs(connection: Connection, call: RequestContext) -> Response:
    """Return one page of a schedule's runs, newest first."""
    query: RunQuery = call.query
    schedule = _find(connection, call)
    page = schedules.list_runs(
        connection,
        schedule.id,
        limit=query.limit,
        state=query.state,
        before=_PREFIX + query.cursor.before if query.cursor else None,
    )
    content = {
        "runs": [represent_run(row) for row in page.runs],
        **total_fields(page),
    }
    following = PageCursor(RUNS, page.next.removeprefix(_PREFIX)) if page.next else None
    return page_response(call, content, following)


def _find(connection: Connection, call: RequestContext, *, lock: bool = False) -> Schedule:
    schedule = load_schedule(connection, call.path["schedule_id"], lock=lock)
    if schedule is None:
        raise SCHEDULE_NOT_FOUND.error()
    return schedule


def _find_living(connection: Connection, call: RequestContext) -> Schedule:
    schedule = _find(connection, call, lock=True)
    if schedule.status is ScheduleStatus.DELETED:
        raise ScheduleDeletedError
    return schedule


def _find_changeable(connection: Connection, call: RequestContext) -> Schedule:
    schedule = _find_living(connection, call)
    _require_managed_here(schedule)
    return schedule


def _require_future(call: RequestContext, definition: ScheduleDefinition) -> None:
    """Raise ProblemError (422) if the schedule would never run."""
    if definition.ends_at is not None and definition.ends_at <= call.services.clock.now():
        raise invalid_member("ends_at", "it has passed; use a time in the future")


def _require_managed_here(schedule: Schedule, what: str = "change") -> None:
    if schedule.managed_by is not ManagedBy.API:
        raise SCHEDULE_MANAGED.error(verb=what)


def _respond(
    call: RequestContext, schedule: Schedule, details: dict[str, Json], *, has_changed: bool = True
) -> Response:
    change = AuditedChange(target=_target(schedule), details=details)
    return Response(_represent(call, schedule), change=change if has_changed else None)


def _list_members(body: BodyModel) -> dict[str, Json]:
    """Return the details for the audit log: the names of the members."""
    return {"members": sorted(body.model_fields_set - {"name"})}


def _target(schedule: Schedule) -> str:
    return f"schedule:{schedule.id}"


def _represent(call: RequestContext, schedule: Schedule) -> dict[str, Json]:
    upcoming = [isoformat(moment) for moment in list_next_runs(schedule)]
    return represent_schedule(schedule, call.services.public_url) | {"upcoming": upcoming}


_SCHEDULES = "/api/admin/schedules"
_SCHEDULE = f"{_SCHEDULES}/{{schedule_id}}"

ENDPOINTS = (
    Endpoint(
        method="POST",
        path=_SCHEDULES,
        access=AccessRole.ADMIN,
        summary="Create a schedule",
        handler=create_schedule,
        role=ConsoleRole.OPERATOR,
        body=NewSchedule,
        response=ScheduleDetail,
        action="schedule.create",
        idempotent=True,
        status=201,
        problems=(SCHEDULE_NAME_TAKEN,),
    ),
    Endpoint(
        method="GET",
        path=_SCHEDULES,
        access=AccessRole.ADMIN,
        role=ConsoleRole.VIEWER,
        summary="List schedules by name",
        handler=list_schedules,
        query=ScheduleQuery,
        response=ScheduleList,
    ),
    Endpoint(
        method="GET",
        path=f"{_SCHEDULES}/upcoming",
        access=AccessRole.ADMIN,
        role=ConsoleRole.VIEWER,
        summary="List upcoming runs of all schedules",
        handler=list_upcoming_runs,
        query=UpcomingQuery,
        response=UpcomingList,
    ),
    Endpoint(
        method="GET",
        path=_SCHEDULE,
        access=AccessRole.ADMIN,
        role=ConsoleRole.VIEWER,
        summary="Get a schedule and its next fire times",
        handler=get_schedule,
        response=ScheduleDetail,
        problems=(SCHEDULE_NOT_FOUND,),
    ),
    Endpoint(
        method="PATCH",
        path=_SCHEDULE,
        access=AccessRole.ADMIN,
        summary="Update a schedule's definition",
        handler=update_schedule,
        role=ConsoleRole.OPERATOR,
        body=ScheduleChange,
        response=ScheduleDetail,
        action="schedule.change",
        problems=(SCHEDULE_NOT_FOUND, SCHEDULE_DELETED, SCHEDULE_MANAGED),
    ),
    Endpoint(
        method="DELETE",
        path=_SCHEDULE,
        access=AccessRole.ADMIN,
        summary="Delete a schedule and keep its runs",
        handler=delete_schedule,
        role=ConsoleRole.OPERATOR,
        response=ScheduleDetail,
        action="schedule.delete",
        problems=(SCHEDULE_NOT_FOUND, SCHEDULE_MANAGED),
    ),
    Endpoint(
        method="POST",
        path=f"{_SCHEDULE}/run",
        access=AccessRole.ADMIN,
        summary="Run a schedule now, even if it is disabled",
        handler=run_schedule,
        role=ConsoleRole.OPERATOR,
        response=ScheduleRun,
        action="schedule.run",
        idempotent=True,
        status=202,
        problems=(SCHEDULE_NOT_FOUND, SCHEDULE_DELETED, SCHEDULE_NOT_STARTED, NO_INVESTIGATOR),
    ),
    Endpoint(
        method="POST",
        path=f"{_SCHEDULE}/enable",
        access=AccessRole.ADMIN,
        summary="Enable a schedule and reset its failure count",
        handler=enable_schedule,
        role=ConsoleRole.OPERATOR,
        response=ScheduleDetail,
        action="schedule.enable",
        problems=(SCHEDULE_NOT_FOUND, SCHEDULE_DELETED, SCHEDULE_REMOVED),
    ),
    Endpoint(
        method="POST",
        path=f"{_SCHEDULE}/disable",
        access=AccessRole.ADMIN,
        summary="Disable a schedule until you enable it again",
        handler=disable_schedule,
        role=ConsoleRole.OPERATOR,
        response=ScheduleDetail,
        action="schedule.disable",
        problems=(SCHEDULE_NOT_FOUND, SCHEDULE_DELETED),
    ),
    Endpoint(
        method="GET",
        path=f"{_SCHEDULE}/runs",
        access=AccessRole.ADMIN,
        role=ConsoleRole.VIEWER,
        summary="List a schedule's runs, newest first",
        handler=list_schedule_runs,
        query=RunQuery,
        response=RunList,
        problems=(SCHEDULE_NOT_FOUND,),
    ),
)

"""Administering schedules."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    StringConstraints,
    create_model,
    model_validator,
)
from sqlalchemy import Connection

from tocsin import schedules
from tocsin.clock import isoformat
from tocsin.errors import CallerError, NameTakenError
from tocsin.fields import Duration, any_case
from tocsin.investigations import FailureCause
from tocsin.model import Json, Persona
from tocsin.recurrence import Overlap, ScheduleDefinition
from tocsin.registry import NAME_PATTERN, ManagedBy
from tocsin.schedules import (
    DisabledReason,
    RunState,
    Schedule,
    ScheduleStatus,
    Trigger,
    list_next_runs,
    load_schedule,
    represent_run,
    represent_schedule,
)
from tocsin.web.context import AuditedChange, RequestContext, Response
from tocsin.web.pagination import CompositeCursor, PageCursor
from tocsin.web.parsing import BodyModel, QueryModel, ResponseModel, invalid_request, validate
from tocsin.web.problems import ProblemType, refusal
from tocsin.web.routes.fields import (
    Limit,
    TotalRelation,
    composite_cursor_field,
    cursor_field,
    not_found,
    page_response,
    total_fields,
)
from tocsin.web.routes.sessions import require_investigator, require_provider

LIST = "h"
RUNS = "n"
_PREFIX = "run_"
_FURTHEST = timedelta(days=366)


def _require_near(value: timedelta) -> timedelta:
    if value > _FURTHEST:
        raise ValueError("give 366d at most")
    return value


class NewSchedule(BodyModel, ScheduleDefinition):
    """What to investigate again and again, and when."""

    name: Annotated[str, StringConstraints(pattern=NAME_PATTERN)]


def _optional_fields() -> dict[str, Any]:
    """Return the members of a definition, each of which may be left out."""
    fields = ScheduleDefinition.model_fields.items()
    return {
        name: (it.rebuild_annotation() | None, Field(default=None, description=it.description))
        for name, it in fields
    }


class _ScheduleChangeBase(BodyModel):
    """What is to be different; what is null returns to its default."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    @model_validator(mode="after")
    def _not_nothing(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("give at least one member")
        return self


if TYPE_CHECKING:
    ScheduleChange = _ScheduleChangeBase
else:
    ScheduleChange = create_model(
        "ScheduleChange",
        __base__=_ScheduleChangeBase,
        __doc__=_ScheduleChangeBase.__doc__,
        **_optional_fields(),
    )


class ScheduleQuery(QueryModel):
    """Which schedules, and how many at once."""

    status: Annotated[ScheduleStatus, any_case(ScheduleStatus)] | None = Field(
        default=None, description="Only this status, in any case; by default all but deleted ones."
    )
    tag: Annotated[str, Field(min_length=1, max_length=50, pattern=r"^[^\x00]+$")] | None = Field(
        default=None, description="Only those that have this tag."
    )
    limit: Limit = 50
    cursor: composite_cursor_field(LIST, str, str) | None = None  # type: ignore[valid-type]


class RunQuery(QueryModel):
    """Which runs, and how many at once."""

    state: Annotated[RunState, any_case(RunState)] | None = Field(
        default=None, description="Only this state, in any case."
    )
    limit: Limit = 50
    cursor: cursor_field(RUNS) | None = None  # type: ignore[valid-type]


class UpcomingQuery(QueryModel):
    """How far ahead to look."""

    within: Annotated[Duration, AfterValidator(_require_near)] = Field(
        default=timedelta(days=1), description="How far ahead: an ISO 8601 duration, P366D at most."
    )
    limit: Limit = 50


class ScheduleItem(ResponseModel):
    """A schedule."""

    id: str
    name: str
    managed_by: ManagedBy = Field(description="Where it can be changed.")
    query: str
    persona: Persona
    provider: str | None
    cron: str | None
    interval: str | None = Field(description="An ISO 8601 duration.")
    timezone: str
    jitter: str | None = Field(description="An ISO 8601 duration.")
    starts_at: datetime | None
    ends_at: datetime | None
    timeout: str = Field(description="An ISO 8601 duration.")
    misfire_grace: str = Field(description="An ISO 8601 duration.")
    overlap: Overlap
    failure_limit: int | None
    tags: list[str]
    status: ScheduleStatus
    disabled_reason: DisabledReason | None
    consecutive_failures: int
    last_status: RunState | None = Field(description="How its last run is, or ended.")
    last_error: str | None = Field(description="Why the last run that ended has failed.")
    last_run_at: datetime | None
    next_run_at: datetime | None
    revision: int = Field(description="Counts up with every change that someone makes.")
    created_by: str
    created_at: datetime
    updated_at: datetime
    url: str = Field(description="Its page in Tocsin's console.")


class ScheduleDetail(ScheduleItem):
    """A schedule, and when it runs next."""

    upcoming: list[datetime] = Field(description="The next three times; none unless it is active.")


class ScheduleList(ResponseModel):
    """One page of schedules."""

    schedules: list[ScheduleItem]
    total: int
    next_cursor: str | None = Field(description="For `cursor`; null on the last page.")


class ScheduleRun(ResponseModel):
    """What became of a fire time, or of several that were missed; or a run by hand."""

    id: str
    schedule_id: str
    trigger: Trigger
    state: RunState
    count: int = Field(description="For how many fire times it stands; counted up to 101.")
    session_id: str | None = Field(description="Where it was investigated.")
    cause: FailureCause | None = Field(description="Why it has failed.")
    reason: str | None = Field(description="The same in words, or why it was not run.")
    fire_at: datetime = Field(description="The time that the schedule names.")
    due_at: datetime = Field(description="The same with the schedule's jitter.")
    until: datetime | None = Field(description="The last of several that were missed.")
    started_at: datetime | None
    ended_at: datetime | None
    duration_ms: int | None
    created_by: str


class RunList(ResponseModel):
    """One page of runs."""

    runs: list[ScheduleRun]
    total: int = Field(description="How many match, counted up to 10,000.")
    total_relation: TotalRelation
    next_cursor: str | None = Field(description="For `cursor`; null on the last page.")


class UpcomingRun(ResponseModel):
    """A run that is to come."""

    due_at: datetime
    schedule_id: str
    schedule_name: str


class UpcomingList(ResponseModel):
    """What is due, the next first."""

    upcoming: list[UpcomingRun]
    until: datetime = Field(description="Up to when these are all.")
    truncated: bool = Field(description="Whether there are more than `limit` within the time.")


def create_schedule(connection: Connection, call: RequestContext) -> Response:
    """Create a schedule, and answer it with its next fire times."""
    body: NewSchedule = call.body
    _require_future(call, body)
    require_provider(call, body.provider)
    by, now = call.principal.name, call.services.clock.now()
    try:
        made = schedules.create_schedule(
            connection, body.name, body, managed_by=ManagedBy.API, by=by, now=now
        )
    except NameTakenError:
        detail = f"There is a schedule {body.name!r} already."
        raise refusal(ProblemType.NAME_TAKEN, 409, detail) from None
    return _respond(call, made, {"name": made.name, **_list_members(body)})


def list_schedules(connection: Connection, call: RequestContext) -> Response:
    """Answer one page of the schedules, by name."""
    query: ScheduleQuery = call.query
    page = schedules.list_schedules(
        connection,
        limit=query.limit,
        status=query.status,
        tag=query.tag,
        after=query.cursor.parts if query.cursor else None,
    )
    items = [represent_schedule(schedule, call.services.public_url) for schedule in page.schedules]
    content = {"schedules": items, "total": page.total}
    return page_response(call, content, CompositeCursor(LIST, page.next) if page.next else None)


def list_upcoming_runs(connection: Connection, call: RequestContext) -> Response:
    """Answer what is due next."""
    query: UpcomingQuery = call.query
    until = call.services.clock.now() + query.within
    found = schedules.list_upcoming(connection, until, query.limit + 1)
    shown, truncated = found[: query.limit], len(found) > query.limit
    upcoming = [
        {"due_at": isoformat(due), "schedule_id": it.id, "schedule_name": it.name}
        for due, it in shown
    ]
    until = shown[-1][0] if truncated else until
    content = {"upcoming": upcoming, "until": isoformat(until), "truncated": truncated}
    return Response(content)


def get_schedule(connection: Connection, call: RequestContext) -> Response:
    """Answer one schedule; also one that was deleted."""
    return Response(_represent(call, _find(connection, call)))


def update_schedule(connection: Connection, call: RequestContext) -> Response:
    """Change what a schedule is defined by, and answer it. Whether it is enabled stays."""
    body: ScheduleChange = call.body
    schedule = _find_changeable(connection, call)
    given = {name: getattr(body, name) for name in body.model_fields_set}
    definition = validate(_merge(schedule.document, given), ScheduleDefinition)
    _require_future(call, definition)
    require_provider(call, definition.provider)
    changed = schedules.change_schedule(connection, schedule, definition, call.services.clock.now())
    return _respond(call, changed, _list_members(body), has_changed=changed is not schedule)


def _merge(document: Any, given: dict[str, Any]) -> dict[str, Any]:
    """Return a definition with what is given; an interval takes the place of a cron expression."""
    for one, other in (("cron", "interval"), ("interval", "cron")):
        if given.get(one) is not None and other not in given:
            given = given | {other: None}
    return {name: it for name, it in {**document, **given}.items() if it is not None}


def delete_schedule(connection: Connection, call: RequestContext) -> Response:
    """Delete a schedule, and answer it; a run under way ends as it does."""
    schedule = _find(connection, call, lock=True)
    if schedule.status is ScheduleStatus.DELETED:
        return Response(_represent(call, schedule))
    if not schedule.is_removed:  # what plugins.toml names no more can be changed nowhere else
        _require_managed_here(schedule, "remove")
    deleted = schedules.delete_schedule(connection, schedule, call.services.clock.now())
    return _respond(call, deleted, {"name": deleted.name})


def run_schedule(connection: Connection, call: RequestContext) -> Response:
    """Run a schedule now, and answer the run; it counts as any other."""
    require_investigator(call)
    schedule = _find(connection, call, lock=True)
    row = schedules.run_now(connection, schedule, call.principal.name, call.services.clock.now())
    change = AuditedChange(
        target=_target(schedule), details={"run": row["id"], "state": row["state"]}
    )
    return Response(represent_run(row), change=change)


def enable_schedule(connection: Connection, call: RequestContext) -> Response:
    """Have a schedule run from now on, and answer it; its failures count from 0."""
    schedule = _find_living(connection, call)
    if schedule.is_removed:
        words = "plugins.toml does not name the schedule any more; apply one that does."
        raise CallerError(409, words)
    enabled = schedules.enable_schedule(connection, schedule, call.services.clock.now())
    details: dict[str, Json] = {"reason": schedule.disabled_reason}
    return _respond(call, enabled, details, has_changed=enabled is not schedule)


def disable_schedule(connection: Connection, call: RequestContext) -> Response:
    """Have a schedule run no more, and answer it; a run under way ends as it does."""
    schedule = _find_living(connection, call)
    if not schedule.is_active:
        return Response(_represent(call, schedule))
    now = call.services.clock.now()
    disabled = schedules.disable_schedule(connection, schedule, DisabledReason.MANUAL, now)
    return _respond(call, disabled, {})


def list_schedule_runs(connection: Connection, call: RequestContext) -> Response:
    """Answer one page of a schedule's runs, the newest first."""
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
        raise not_found("schedule")
    return schedule


def _find_living(connection: Connection, call: RequestContext) -> Schedule:
    schedule = _find(connection, call, lock=True)
    if schedule.status is ScheduleStatus.DELETED:
        raise CallerError(409, "The schedule was deleted; create it anew.")
    return schedule


def _find_changeable(connection: Connection, call: RequestContext) -> Schedule:
    schedule = _find_living(connection, call)
    _require_managed_here(schedule)
    return schedule


def _require_future(call: RequestContext, definition: ScheduleDefinition) -> None:
    """Raise CallerError (422) for a schedule that would never run."""
    if definition.ends_at is not None and definition.ends_at <= call.services.clock.now():
        mistake = {"path": "ends_at", "detail": "it has passed; give a moment that is to come"}
        raise invalid_request("body", [mistake])


def _require_managed_here(schedule: Schedule, what: str = "change") -> None:
    if schedule.managed_by is not ManagedBy.API:
        words = f"plugins.toml says what this schedule is; {what} it there and apply it."
        raise refusal(ProblemType.MANAGED_BY_FILE, 409, words)


def _respond(
    call: RequestContext, schedule: Schedule, details: dict[str, Json], *, has_changed: bool = True
) -> Response:
    change = AuditedChange(target=_target(schedule), details=details)
    return Response(_represent(call, schedule), change=change if has_changed else None)


def _list_members(body: BodyModel) -> dict[str, Json]:
    """Return what of a body the audit log keeps: which members were given."""
    return {"members": sorted(body.model_fields_set - {"name"})}


def _target(schedule: Schedule) -> str:
    return f"schedule:{schedule.id}"


def _represent(call: RequestContext, schedule: Schedule) -> dict[str, Json]:
    upcoming = [isoformat(moment) for moment in list_next_runs(schedule)]
    return represent_schedule(schedule, call.services.public_url) | {"upcoming": upcoming}

"""Schedules: recurring investigations and their runs."""

from tocsin.schedules.completion import RunCompletion
from tocsin.schedules.due_schedules import (
    FireResult,
    ScheduleDeletedError,
    ScheduleNotStartedError,
    run_now,
)
from tocsin.schedules.file_schedules import apply_schedules, plan_schedules
from tocsin.schedules.lifecycle import (
    change_schedule,
    create_schedule,
    delete_schedule,
    disable_schedule,
    enable_schedule,
)
from tocsin.schedules.loop import Scheduler
from tocsin.schedules.metrics import ScheduleGauges, ScheduleMetrics, load_summary
from tocsin.schedules.queries import (
    RunPage,
    SchedulePage,
    list_next_runs,
    list_runs,
    list_schedules,
    list_upcoming,
    represent_run,
    represent_schedule,
)
from tocsin.schedules.records import (
    DisabledReason,
    RunState,
    Schedule,
    ScheduleStatus,
    Trigger,
    load_schedule,
    load_schedules,
)

__all__ = [
    "DisabledReason",
    "FireResult",
    "RunCompletion",
    "RunPage",
    "RunState",
    "Schedule",
    "ScheduleDeletedError",
    "ScheduleGauges",
    "ScheduleMetrics",
    "ScheduleNotStartedError",
    "SchedulePage",
    "ScheduleStatus",
    "Scheduler",
    "Trigger",
    "apply_schedules",
    "change_schedule",
    "create_schedule",
    "delete_schedule",
    "disable_schedule",
    "enable_schedule",
    "list_next_runs",
    "list_runs",
    "list_schedules",
    "list_upcoming",
    "load_schedule",
    "load_schedules",
    "load_summary",
    "plan_schedules",
    "represent_run",
    "represent_schedule",
    "run_now",
]

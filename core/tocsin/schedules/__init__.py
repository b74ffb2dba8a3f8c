"""Schedules: what is investigated again and again, its runs, and what follows from them."""

from tocsin.schedules.applying import apply_schedules, plan_schedules
from tocsin.schedules.changing import (
    change_schedule,
    create_schedule,
    delete_schedule,
    disable_schedule,
    enable_schedule,
)
from tocsin.schedules.firing import Fired, run_now
from tocsin.schedules.gauges import Gauges, load_standing
from tocsin.schedules.listing import (
    RunPage,
    SchedulePage,
    list_runs,
    list_schedules,
    list_upcoming,
    upcoming_of,
)
from tocsin.schedules.loop import Scheduling
from tocsin.schedules.measuring import Meter
from tocsin.schedules.records import (
    DisabledReason,
    RunState,
    Schedule,
    ScheduleStatus,
    Trigger,
    load_schedule,
    load_schedules,
)
from tocsin.schedules.representation import represent_run, represent_schedule
from tocsin.schedules.settling import Settling

__all__ = [
    "DisabledReason",
    "Fired",
    "Gauges",
    "Meter",
    "RunPage",
    "RunState",
    "Schedule",
    "SchedulePage",
    "ScheduleStatus",
    "Scheduling",
    "Settling",
    "Trigger",
    "apply_schedules",
    "change_schedule",
    "create_schedule",
    "delete_schedule",
    "disable_schedule",
    "enable_schedule",
    "list_runs",
    "list_schedules",
    "list_upcoming",
    "load_schedule",
    "load_schedules",
    "load_standing",
    "plan_schedules",
    "represent_run",
    "represent_schedule",
    "run_now",
    "upcoming_of",
]

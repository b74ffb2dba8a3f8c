"""When something recurs, and what a schedule is defined by."""

from tocsin.recurrence.cron import CronError
from tocsin.recurrence.definition import Overlap, ScheduleDefinition
from tocsin.recurrence.fire_times import MOST_COUNTED, FireTime, Past, Recurrence

__all__ = [
    "MOST_COUNTED",
    "CronError",
    "FireTime",
    "Overlap",
    "Past",
    "Recurrence",
    "ScheduleDefinition",
]

"""Recurrence: fire times and schedule definitions."""

from tocsin.recurrence.cron import CronError
from tocsin.recurrence.definition import Overlap, ScheduleDefinition
from tocsin.recurrence.fire_times import MAX_COUNTED, FireTime, PastFireTimes, Recurrence

__all__ = [
    "MAX_COUNTED",
    "CronError",
    "FireTime",
    "Overlap",
    "PastFireTimes",
    "Recurrence",
    "ScheduleDefinition",
]

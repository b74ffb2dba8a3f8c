"""What of a node runs schedules."""

from __future__ import annotations

from tocsin.clock import Clock
from tocsin.events import Notifiers
from tocsin.metrics import Metrics
from tocsin.node.measuring import register_database_gauges
from tocsin.schedules import RunCompletion, ScheduleGauges, ScheduleMetrics, Scheduler, load_summary
from tocsin.settings import Settings
from tocsin.store import Database


def build_scheduling(
    settings: Settings, database: Database, clock: Clock, bells: Notifiers, metrics: Metrics
) -> Scheduler:
    """Return what runs schedules, with nothing running yet."""
    meter, gauges = ScheduleMetrics(metrics), ScheduleGauges(metrics, clock)
    register_database_gauges(metrics, database, load_summary, gauges.show, gauges.clear)
    settling = RunCompletion(settings.public_url, settings.schedule_failure_limit, meter)
    return Scheduler(database, clock, bells, settling, meter)

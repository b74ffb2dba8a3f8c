"""What of a node runs schedules."""

from __future__ import annotations

from tocsin.clock import Clock
from tocsin.events import Bells
from tocsin.metrics import Metrics
from tocsin.node.measuring import measure
from tocsin.schedules import Gauges, Meter, Scheduling, Settling, load_standing
from tocsin.settings import Settings
from tocsin.store import Database


def make_scheduling(
    settings: Settings, database: Database, clock: Clock, bells: Bells, metrics: Metrics
) -> Scheduling:
    """Return what runs schedules, with nothing running yet."""
    meter, gauges = Meter(metrics), Gauges(metrics, clock)
    measure(metrics, database, load_standing, gauges.show, gauges.clear)
    settling = Settling(settings.public_url, settings.schedule_failure_limit, meter)
    return Scheduling(database, clock, bells, settling, meter)

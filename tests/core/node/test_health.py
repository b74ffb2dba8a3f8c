"""Gauges of a node that need no database."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import text

from tocsin.metrics import Metrics
from tocsin.node.health import NodeHealth


async def test_the_gauges_name_the_fault_and_the_stalled_loops(database, clock):
    metrics = Metrics(clock)
    health = NodeHealth(database, clock, 1, "n1", roles=[], describe_keys=dict, metrics=metrics)
    assert await health.check_database() is None
    assert b"tocsin_database_fault{" not in await metrics.expose()
    health.heartbeats.add("routing", timedelta(seconds=-1))
    await database.write(lambda c: c.execute(text("DELETE FROM alembic_version")).close())
    health._probe._ended_at = None  # probe again at once
    await health.check_database()
    clock.advance(seconds=10)
    exposed = (await metrics.expose()).decode()
    assert 'tocsin_database_fault{fault="schema"} 1.0' in exposed
    assert 'tocsin_loop_stalled{loop="routing"} 1.0' in exposed

"""What a proof costs: nothing for all that lies outside its period."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from sqlalchemy import event

from graph_rows import Graph, incident
from session_rows import add_session
from tocsin.accounting import Period, report_period, trace_incident
from tocsin.model import ChangeType, Node, NodeKind, RelationType

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)

PARTIAL = r"ix_(deliveries_(due|waiting|resting)|events_unrouted)"
"""These hold only what is not done yet, so to walk them costs nothing for what is."""
WALK = re.compile(
    r"SCAN (coverage|events|deliveries|attempts|incidents|sessions|relations|write_backs"
    r"|incident_changes|incident_triage)"
    r"(?! USING (COVERING )?INDEX " + PARTIAL + r"\b)"
)


async def plans(database, operation, *arguments) -> dict[str, str]:
    """Do it, and return the plan of each statement that this took."""

    def explain(connection) -> dict[str, str]:
        noted = []

        def note(_connection, _cursor, statement, parameters, *_rest) -> None:
            noted.append((statement, parameters))

        event.listen(connection, "before_cursor_execute", note)
        operation(connection, *arguments)
        event.remove(connection, "before_cursor_execute", note)
        driver = connection.connection.driver_connection
        return {
            statement: " | ".join(
                row[3] for row in driver.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)
            )
            for statement, parameters in noted
        }

    return await database.read(explain)


@pytest.fixture
async def eventful(happened, clock):
    """Everything has happened that a proof has to ask more about."""
    now, hour = clock.now(), timedelta(hours=1)
    await happened.read(("eve", 0, 100), ("eve", 140, 150))
    await happened.read(("cloud", now - 3 * hour, now - 2 * hour), ("cloud", now - hour, now))
    await happened.destination()
    await happened.sync()
    delivery = await happened.deliver(await happened.emit(), "pending")
    await happened.attempt(delivery, 1, "later")
    clock.advance(hours=2)
    return happened


async def test_no_statement_of_a_proof_walks_a_whole_table(eventful, clock, database):
    period = Period(clock.now() - timedelta(days=1), clock.now())
    found = await plans(database, report_period, period, clock.now())
    assert [plan for plan in found.values() if WALK.search(plan)] == []
    used = " | ".join(found.values())
    for search in (
        "ix_coverage_finished_at (finished_at>? AND finished_at<?)",
        "ix_coverage_provider_stream_source_id (provider=? AND stream=? AND source=? AND id<?)",
        "ix_coverage_provider_stream_source_id (provider=? AND stream=? AND source=?)",
        "ix_incidents_updated_at (updated_at>?)",
        "ix_events_timestamp (timestamp>? AND timestamp<?)",
        "INDEX ix_deliveries_due",
    ):
        assert search in used


async def test_no_statement_of_a_trace_walks_a_whole_table(eventful, database):
    session = Node(NodeKind.SESSION, await database.write(add_session))
    await Graph(database).tell(session, RelationType.EXAMINED, incident(1))
    change = await eventful.emit(event_type=ChangeType.INCIDENT_CHANGED)
    await eventful.deliver(change, "delivered")
    found = await plans(database, trace_incident, 1)
    assert [plan for plan in found.values() if WALK.search(plan)] == []
    used = " | ".join(found.values())
    assert "ix_events_subject (subject=?)" in used
    assert "ix_relations_target_value_target_kind_id (target_value=? AND target_kind=?)" in used
    assert "incident_changes" in used
    assert "ix_emergency_stops_ended_at (ended_at>?)" in used
    assert len(found) == 15

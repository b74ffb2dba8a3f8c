"""Suppression rules keep events from destinations, and are part of the account."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from ipaddress import ip_network
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import func, select, update

from incident_rows import add_incidents
from tocsin.accounting import Period, report_period, trace_incident
from tocsin.delivery.queue.queue import DeliveryQueue
from tocsin.delivery.routing.plan import Routes
from tocsin.delivery.routing.reroute import count_unmatched_events
from tocsin.delivery.routing.router import route_events
from tocsin.delivery.routing.suppression import (
    IncidentFacts,
    SuppressionRule,
    matches_pattern,
)
from tocsin.delivery.routing.suppression_records import (
    MAX_DURATION,
    NewSuppression,
    SuppressionNameTakenError,
    create_suppression,
    end_suppression,
    load_suppression,
)
from tocsin.errors import InvalidInputError
from tocsin.model import ChangeType
from tocsin.registry import ManagedBy
from tocsin.store.tables import deliveries, events

from .conftest import add, alert, destination

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
ARRIVED = {"state": "delivered"}
INCIDENT = IncidentFacts("edge", "Port scan from 192.0.2.7", ("192.0.2.7", "Host-A.example"))


def rule(name="r1", ends_at=NOW + HOUR, **conditions) -> NewSuppression:
    every = {"provider": None, "title": None, "entity": None, "cidr": None, **conditions}
    return NewSuppression(name, "ana", "a scan", ends_at, **every)


@pytest.mark.parametrize(
    ("conditions", "matched"),
    [
        ({"provider": "edge"}, True),
        ({"provider": "cloud"}, False),
        ({"title": "port SCAN*"}, True),
        ({"title": "port scan"}, False),
        ({"entity": "host-a.EXAMPLE"}, True),
        ({"entity": "host-a"}, False),
        ({"network": ip_network("192.0.2.0/24")}, True),
        ({"network": ip_network("198.51.100.0/24")}, False),
        ({"network": ip_network("2001:db8::/32")}, False),
        ({"provider": "edge", "title": "*192.0.2.7", "entity": "192.0.2.7"}, True),
        ({"provider": "edge", "title": "*192.0.2.8", "entity": "192.0.2.7"}, False),
    ],
)
def test_all_given_conditions_must_match(conditions, matched):
    assert SuppressionRule("r", **conditions).matches(INCIDENT) is matched


@given(st.text("ab*", max_size=12), st.text("abA", max_size=12))
def test_a_pattern_matches_as_its_regular_expression_would(pattern, text):
    expression = ".*".join(map(re.escape, pattern.split("*")))
    expected = re.fullmatch(expression, text, re.IGNORECASE) is not None
    assert matches_pattern(pattern, text) is expected


async def route(database, now=NOW):
    return await route_events(database, DeliveryQueue(database), Routes(), 100, now)


async def list_deliveries(database):
    query = select(deliveries.c.event_id, deliveries.c.destination)
    return set(map(tuple, await database.read(lambda connection: connection.execute(query).all())))


async def test_a_suppressed_event_is_stored_traced_and_not_delivered(database, store):
    await add(database, destination())
    await database.write(add_incidents, 2, entities=[("ip", "192.0.2.7")])
    await database.write(create_suppression, rule(cidr="192.0.2.0/24"), "ana", NOW)
    await store(suppressed := alert())
    await route(database)
    assert await list_deliveries(database) == set()
    [event] = (await database.read(trace_incident, 1))["events"]
    assert event["id"] == suppressed.id
    assert (event["outcome"], event["suppressed_by"]) == ("suppressed", "r1")
    assert (await database.read(load_suppression, "r1"))["suppressed_events"] == 1
    unmatched = await database.read(count_unmatched_events, NOW - HOUR, NOW + HOUR)
    assert unmatched == 0


async def test_an_incident_without_the_entity_is_delivered(database, store):
    await add(database, destination())
    await database.write(add_incidents, entities=[("ip", "198.51.100.7")])
    await database.write(create_suppression, rule(cidr="192.0.2.0/24"), "ana", NOW)
    await store(event := alert())
    await route(database)
    assert await list_deliveries(database) == {(event.id, "soc")}


async def test_followed_changes_are_suppressed_and_observer_plugins_get_all(database, store):
    await add(database, destination(settings={"follow_changes": True}))
    hooks = {"hooks": ["tocsin_event", "tocsin_incident_changed"]}
    await add(database, destination("hook:o", managed_by=ManagedBy.PLUGIN, settings=hooks))
    await database.write(add_incidents, provider="edge")
    await database.write(create_suppression, rule(provider="edge"), "ana", NOW)
    data = {"incident_number": 1, "provider": "edge", "changes": {}}
    change = replace(alert(), event_type=ChangeType.INCIDENT_CHANGED, data=data)
    await store(event := alert(), change)
    await route(database)
    assert await list_deliveries(database) == {(event.id, "hook:o"), (change.id, "hook:o")}
    report = await database.read(report_period, Period(NOW - HOUR, NOW + HOUR), NOW + HOUR)
    assert (report["events"]["pending"], report["changes"]["pending"]) == (1, 1)
    await database.write(
        lambda connection: connection.execute(update(deliveries), ARRIVED) and None
    )
    report = await database.read(report_period, Period(NOW - HOUR, NOW + HOUR), NOW + HOUR)
    for kind in ("events", "changes"):
        counts = {name: count for name, count in report[kind].items() if count}
        assert counts == {"suppressed": 1}
    trace = await database.read(trace_incident, 1)
    for [traced] in (trace["events"], trace["changes"]):
        assert (traced["outcome"], traced["suppressed_by"]) == ("suppressed", "r1")


async def test_a_rule_applies_until_it_ends(database, store):
    await add(database, destination())
    await database.write(add_incidents, 3, provider="edge")
    await database.write(create_suppression, rule(provider="edge"), "ana", NOW)
    await store(early := alert(1))
    await route(database, NOW + HOUR - timedelta(microseconds=1))
    await store(late := alert(2))
    await route(database, NOW + HOUR)
    await database.write(create_suppression, rule("r2", NOW + 3 * HOUR, title="*"), "ana", NOW)
    assert await database.write(end_suppression, "r2", NOW + HOUR)
    assert not await database.write(end_suppression, "r2", NOW + 2 * HOUR)
    await store(later := alert(3))
    await route(database, NOW + HOUR)
    found = {id_ for id_, _ in await list_deliveries(database)}
    assert found == {late.id, later.id}
    assert early.id not in found


async def test_a_rule_that_is_created_during_routing_applies_to_the_batch(database, store):
    await add(database, destination())
    await database.write(add_incidents, provider="edge")
    await store(alert())

    class CreatesRule(Routes):
        """Creates a rule after the batch was read, as another node could."""

        created = False

    routes = CreatesRule()
    read = database.read

    class Meanwhile:
        """The database, in which a rule appears between the read and the write of a batch."""

        def __getattr__(self, name):
            return getattr(database, name)

        async def read(self, *arguments, **named):
            batch = await read(*arguments, **named)
            if not routes.created:
                routes.created = True
                await database.write(create_suppression, rule(provider="edge"), "ana", NOW)
            return batch

    await route_events(Meanwhile(), DeliveryQueue(database), routes, 100, NOW)
    assert await list_deliveries(database) == set()


async def test_a_rule_has_a_bounded_end_and_its_own_name(database):
    for wrong in (NOW, NOW + MAX_DURATION + HOUR):
        with pytest.raises(InvalidInputError, match="at most 366 days"):
            await database.write(create_suppression, rule(ends_at=wrong, title="x"), "ana", NOW)
    await database.write(create_suppression, rule(title="x"), "ana", NOW)
    await database.write(end_suppression, "r1", NOW)
    with pytest.raises(SuppressionNameTakenError):
        await database.write(create_suppression, rule(title="x"), "ana", NOW)


@pytest.mark.parametrize("seed", range(3))
async def test_suppressed_routed_and_without_destination_are_all_events(database, store, seed):
    random = Random(seed)
    await add(database, destination(settings={"min_severity": "High"}))
    titles = [random.choice(["A scan", "a SCAN of ports", "Other"]) for _ in range(24)]
    for title in titles:
        await database.write(add_incidents, title=title)
    await database.write(create_suppression, rule(title="a scan"), "ana", NOW)
    await database.write(create_suppression, rule("r2", title="*ports"), "ana", NOW)
    severities = [random.choice(["High", "Medium"]) for _ in titles]
    await store(*(alert(number, severity) for number, severity in enumerate(severities, 1)))
    while (await route(database)).count:
        pass
    expected = Counter(
        "suppressed" if title != "Other" else "pending" if severity == "High" else "no-destination"
        for title, severity in zip(titles, severities, strict=True)
    )
    report = await database.read(report_period, Period(NOW - HOUR, NOW + HOUR), NOW + HOUR)
    assert {name: count for name, count in report["events"].items() if count} == expected
    query = select(events.c.suppressed_by, func.count()).group_by(events.c.suppressed_by)
    named = dict(
        await database.read(lambda connection: list(map(tuple, connection.execute(query))))
    )
    assert (named["r1"], named["r2"]) == (titles.count("A scan"), titles.count("a SCAN of ports"))

"""Delivery of changes to the plugins and destinations that follow them."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import timedelta

import pytest
import uvloop

import tocsin_templates
from tocsin import ChangeType, Delivery, Receipt, Refused
from tocsin.accounting import Period, report_period
from tocsin.delivery.destinations.channels import ObserverChannel
from tocsin.delivery.destinations.samples import build_sample
from tocsin.delivery.queue.queue import DeliveryQueue
from tocsin.delivery.queue.states import DeliveryLease, build_new_claim
from tocsin.delivery.rendering import Renderer
from tocsin.delivery.routing.plan import Route, Routes
from tocsin.delivery.routing.reroute import count_unmatched_events
from tocsin.delivery.routing.router import route_events
from tocsin.delivery.sending.attempts import AttemptRunner
from tocsin.registry import ManagedBy
from tocsin.testing import make_tools

from .conftest import add, alert, destination

SHIPPED = Renderer(list(tocsin_templates.tocsin_template_paths()))

ALL = ["tocsin_event", "tocsin_incident_changed", "tocsin_investigation_finished"]


def changed(number: int = 1, provider: str = "edge"):
    data = {"incident_number": number, "provider": provider, "changes": {}}
    return replace(alert(number), event_type=ChangeType.INCIDENT_CHANGED, data=data)


def finished(schedule_id=None, error=None):
    data = {"schedule_id": schedule_id, "error": error}
    return replace(alert(), event_type=ChangeType.INVESTIGATION_FINISHED, data=data)


def claim(event):
    return build_new_claim("dlv_1", event, DeliveryLease("lease", event.timestamp, 0, ""))


def observer(hooks):
    return destination("hook:o", managed_by=ManagedBy.PLUGIN, settings=hooks)


@pytest.mark.parametrize(
    ("settings", "taken"),
    [
        ({}, [True, False, False]),
        ({"hooks": ALL}, [True, True, True]),
        ({"hooks": ALL[1:2]}, [False, True, False]),
        ({"hooks": ALL[2:]}, [False, False, True]),
    ],
)
def test_an_observer_receives_what_it_has_hooks_for(settings, taken):
    route = Route.of(observer(settings))
    assert [route.takes(event) for event in (alert(), changed(), finished("sch_1"))] == taken


@pytest.mark.parametrize(
    ("settings", "event", "taken"),
    [
        ({}, changed(), False),
        ({"follow_changes": False}, changed(), False),
        ({"hooks": ALL}, changed(), False),
        ({"hooks": [{}], "follow_changes": True}, changed(), True),
        ({"follow_changes": True}, changed(), True),
        ({"follow_changes": True, "providers": ["cloud"]}, changed(), False),
        ({"follow_changes": True, "min_severity": "Critical"}, changed(), True),
        ({"follow_changes": True}, finished(), True),
        ({"follow_changes": True}, finished(schedule_id="sch_1"), False),
        ({"follow_changes": True}, finished(error="it failed"), False),
    ],
)
def test_a_destination_follows_only_if_it_opts_in(settings, event, taken):
    assert Route.of(destination(settings=settings)).takes(event) is taken


async def test_a_change_never_reaches_deliver(make_channel):
    channel = make_channel()
    result = await AttemptRunner(channel, SHIPPED).make(claim(changed()))
    assert (result.outcome, channel.deliveries) == ("refused", [])
    assert "cannot follow changes" in result.reason


async def test_a_channel_that_follows_is_called(make_channel):
    channel, followed = make_channel(), []

    async def follow(delivery: Delivery) -> Receipt:
        followed.append(delivery.event.event_type)
        return Receipt(status=200)

    channel.follow = follow
    await AttemptRunner(channel, SHIPPED).make(claim(changed()))
    assert followed == [ChangeType.INCIDENT_CHANGED]


async def test_each_hook_is_called_with_its_own_events(clock, deliver_to):
    calls: list[tuple[str, str]] = []
    hooks = {name: lambda event, name=name: calls.append((name, event.event_type)) for name in ALL}
    channel = ObserverChannel(
        ObserverChannel.Settings(plugin="o"), make_tools(None, "hook:o", clock), hooks
    )
    for event in (alert(), changed(), finished()):
        await deliver_to(channel, event)
    assert calls == list(
        zip(ALL, ("incident-alert", "incident-changed", "investigation-finished"), strict=True)
    )
    del hooks["tocsin_event"]
    with pytest.raises(Refused, match="no longer implements the hook `tocsin_event`"):
        await deliver_to(channel, alert())


@pytest.fixture
def deliver_to():
    async def deliver_to(channel, event) -> None:
        given = {"id": "dlv_1", "attempt": 1, "remote_id": None, "render": lambda _: b""}
        await channel.deliver(Delivery(event=event, **given))

    return deliver_to


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_hook_that_is_a_coroutine_function_is_awaited(clock, deliver_to, new_loop):
    heard = []

    async def hear(event):
        heard.append(event.id)

    settings, tools = ObserverChannel.Settings(plugin="o"), make_tools(None, "hook:o", clock)
    with asyncio.Runner(loop_factory=new_loop) as runner:
        channel = ObserverChannel(settings, tools, {"tocsin_event": hear})
        runner.run(deliver_to(channel, alert()))
    assert len(heard) == 1


async def test_changes_are_accounted_for_apart_from_events(database, store, clock):
    await add(database, observer({"hooks": ALL[1:2]}))
    await store(alert(), changed())
    routed = await route_events(database, DeliveryQueue(database), Routes(), 10, clock.now())
    assert routed.count == 2
    period = Period(alert().timestamp - timedelta(days=1), alert().timestamp)
    report = await database.read(report_period, period, clock.now())
    assert {name: n for name, n in report["changes"].items() if n} == {"pending": 1}
    assert {name: n for name, n in report["events"].items() if n} == {"no-destination": 1}
    assert (report["not_arrived"], report["destinations"]) == ([], [])
    until = clock.now() + timedelta(seconds=1)
    assert await database.read(count_unmatched_events, period.since, until) == 1


def sample(kind: ChangeType, **data):
    made = build_sample(kind.template_type, "https://t.example", alert().timestamp)
    return replace(made, event_type=kind, data={**made.data, **data})


def test_a_settled_incident_turns_green_in_chat():
    event = sample(ChangeType.INCIDENT_CHANGED, disposition=None, status="New")
    event = replace(event, context={**event.context, "triage": {}})
    for data, mark in (
        ({"status": "New"}, "🟠"),
        ({"status": "Closed"}, "🟢"),
        ({"disposition": "false-positive"}, "🟢"),
    ):
        shown = replace(event, data={**event.data, "severity": "High", **data})
        title = json.loads(SHIPPED.render("slack", shown))["blocks"][0]["text"]["text"]
        assert title.startswith(mark), data


def test_a_report_that_a_person_started_names_the_person_and_no_schedule():
    finished = {"schedule_id": None, "schedule_name": "ana"}
    event = sample(ChangeType.INVESTIGATION_FINISHED, **finished)
    for receiver, part in (("slack", "body"), ("jira", "summary")):
        text = SHIPPED.render(receiver, event, part).decode()
        assert "ana" in text
        assert "chedule" not in text

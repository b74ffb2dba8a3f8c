"""Behavior specific to TheHive: alerts that become cases."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from pydantic import ValidationError

from tocsin import ChangeType, Refused
from tocsin.testing import make_settings
from tocsin.testing.conformance.channel_events import FOUND_ADDRESS
from tocsin.testing.conformance.object_channel_harness import (
    ADDRESSES,
    ObjectChannelHarness,
    ObjectChannelSuite,
)
from tocsin_connectors.soar.thehive import TheHive

from .simulator import KEY, TheHiveSimulator

URL = "https://soar.example.org"


class Suite(ObjectChannelSuite):
    channel = TheHive
    simulator = TheHiveSimulator

    def settings(self, url):
        return {"url": url, "api_key": KEY}


@pytest.fixture
async def harness():
    async with Suite().harness(close_when="event_type == 'investigation-completed'") as harness:
        yield harness


async def test_updates_go_to_the_case_of_the_alert(
    harness: ObjectChannelHarness,
):
    await harness.bring(harness.alert())
    case = harness.simulator.promote(harness.objects[0].id)
    await harness.bring(harness.completed("incident:7"))
    assert [observable["data"] for observable in case["observables"]] == [*ADDRESSES, FOUND_ADDRESS]
    [comment] = case["comments"]
    assert "Tocsin event" in comment["message"]
    assert harness.simulator.alerts[harness.objects[0].id]["status"] == "Imported", (
        "a case is not closed"
    )


async def test_unknown_status_is_refused_with_reason(harness: ObjectChannelHarness):
    settings = harness.checked_settings(closed_status="Gone")
    harness.channel = TheHive(settings, harness.channel.tools)
    await harness.bring(harness.alert())
    with pytest.raises(Refused, match="there is no such status"):
        await harness.attempt(harness.completed("incident:7"))


async def test_concurrent_creation_is_found_and_completed(harness: ObjectChannelHarness):
    harness.simulator.meanwhile = True
    receipt = await harness.bring(harness.alert())
    [found] = harness.objects
    assert receipt.remote_id == found.id
    assert sorted(found.observables) == sorted(ADDRESSES)
    told = json.loads(receipt.response)
    assert told["objects"][0]["made"] is False


def changed(harness: ObjectChannelHarness, **changes):
    event = harness.alert()
    data = {"changes": changes, "disposition": None, **{n: c["to"] for n, c in changes.items()}}
    kind = ChangeType.INCIDENT_CHANGED
    return replace(event, event_type=kind, data={**event.data, **data})


async def test_a_followed_incident_closes_its_alert_once():
    async with Suite().harness(close_when="data.status == 'Closed'") as harness:
        await harness.bring(harness.alert())
        await harness.bring(changed(harness, severity={"from": "High", "to": "Critical"}))
        assert [each.is_open for each in harness.objects] == [True]
        for _ in range(2):
            await harness.bring(changed(harness, status={"from": "New", "to": "Closed"}))
        assert [each.is_open for each in harness.objects] == [False]


async def test_a_report_that_a_person_started_is_added_once_and_creates_nothing(harness):
    event = replace(harness.completed("incident:7"), event_type=ChangeType.INVESTIGATION_FINISHED)
    await harness.bring(event)
    assert harness.objects == []
    await harness.bring(harness.alert())
    case = harness.simulator.promote(harness.objects[0].id)
    for _ in range(2):
        await harness.bring(event)
    [comment] = case["comments"]
    assert "Tocsin event" in comment["message"]


@pytest.mark.parametrize(
    ("disposition", "status"), [("false-positive", "FalsePositive"), ("true-positive", "Ignored")]
)
async def test_the_status_of_a_closed_alert_follows_the_disposition(disposition, status):
    own = {"false-positive": "FalsePositive"}
    closing = {"close_when": "data.disposition", "follow_changes": True, "close_as": own}
    async with Suite().harness(**closing) as harness:
        await harness.bring(harness.alert())
        event = changed(harness, disposition={"from": None, "to": disposition})
        await harness.bring(event)
        alert = harness.simulator.alerts[harness.objects[0].id]
    assert alert["status"] == status
    reason = f"Closed by Tocsin, as configured. Disposition: {disposition.replace('-', ' ')}."
    assert alert["summary"] == reason


@pytest.mark.parametrize(
    "closing",
    [{}, {"close_recovered": True}, {"close_when": "data.title"}, {"follow_changes": True}],
)
def test_statuses_for_dispositions_without_effect_are_refused(closing):
    own = {"false-positive": "FalsePositive"}
    with pytest.raises(ValidationError, match="close_as: also set close_when and follow_changes"):
        make_settings(TheHive, **Suite().settings(URL), close_as=own, **closing)


def test_closing_by_the_disposition_without_its_events_is_refused():
    closing = {"close_when": "data.disposition == 'duplicate'"}
    with pytest.raises(ValidationError, match="close_when: also set follow_changes"):
        make_settings(TheHive, **Suite().settings(URL), **closing)
    make_settings(TheHive, **Suite().settings(URL), **closing, follow_changes=True)


@pytest.mark.parametrize("status", ["", "x" * 65])
def test_a_status_for_a_disposition_has_a_name_that_thehive_accepts(status):
    with pytest.raises(ValidationError, match="close_as"):
        make_settings(TheHive, **Suite().settings(URL), close_as={"duplicate": status})

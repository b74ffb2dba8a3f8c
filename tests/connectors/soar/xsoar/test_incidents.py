"""Behavior specific to Cortex XSOAR: versions, the War Room, two kinds of API."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import ValidationError

import tocsin_templates
from tocsin import IncidentDisposition, Refused, TryLater
from tocsin.testing import make_settings
from tocsin.testing.conformance.object_channel_harness import (
    ADDRESSES,
    ObjectChannelHarness,
    ObjectChannelSuite,
)
from tocsin_connectors.soar.xsoar import Xsoar
from tocsin_connectors.soar.xsoar.responses import format_line

from .simulator import KEY, KEY_ID, V6, XsoarSimulator

URL = "https://soar.example.org"
CLOSING = {"close_when": "event_type == 'investigation-completed'"}


class Suite(ObjectChannelSuite):
    channel = Xsoar
    simulator = XsoarSimulator

    def settings(self, url):
        return {"url": url, "api_key": KEY, "api_key_id": KEY_ID}

    def template_paths(self):
        return list(map(Path, tocsin_templates.tocsin_template_paths()))


class SuiteOfV6(Suite):
    simulator = V6

    def settings(self, url):
        return {"url": url, "api_key": KEY}


@pytest.fixture
async def harness():
    async with Suite().harness() as harness:
        yield harness


def only(harness: ObjectChannelHarness) -> dict:
    [incident] = harness.simulator.incidents.values()
    return incident


async def test_incident_has_key_and_link(harness: ObjectChannelHarness):
    event = harness.alert()
    receipt = await harness.bring(event)
    made = only(harness)
    assert made["dbotMirrorId"] == event.key
    assert made["severity"] == 3
    labels = {label["type"]: label["value"] for label in made["labels"]}
    assert labels["tocsin_event"] == event.id
    assert labels["tocsin"] == event.data["url"]
    assert receipt.remote_url == f"{harness.simulator.url}/Custom/caseinfoid/{made['id']}"


async def test_version_6_uses_no_prefix_and_no_key_id():
    async with SuiteOfV6().harness(**CLOSING) as harness:
        await harness.bring(harness.alert())
        receipt = await harness.bring(harness.completed("incident:7"))
        [found] = harness.objects
        assert not found.is_open
        assert receipt.remote_url == f"{harness.simulator.url}/#/Details/{found.id}"
        assert not (await harness.channel.check()).problems


@pytest.mark.parametrize("subject", ["schedule:nightly", 'schedule:"a" or b\\" *'])
async def test_incident_without_mirror_id_is_found_by_label(harness: ObjectChannelHarness, subject):
    harness.simulator.keeps_mirror_id = False
    event = replace(harness.failed(1), subject=subject)
    await harness.bring(event, remember=False)
    await harness.bring(event, remember=False)
    assert len(harness.objects) == 1


async def test_similar_incidents_are_not_matched(harness: ObjectChannelHarness):
    await harness.bring(harness.alert())
    only(harness)["dbotMirrorId"] += "0"
    only(harness)["labels"][0]["value"] += "0"
    harness.clock.advance(minutes=1)
    harness.known.clear()
    await harness.bring(harness.alert())
    assert len(harness.objects) == 2


async def test_first_note_opens_the_war_room():
    async with Suite().harness(create_investigation=False) as harness:
        await harness.bring(harness.alert())
        assert only(harness)["status"] == 0, "pending"
        event = harness.completed("incident:7")
        await harness.bring(event)
        await harness.bring(event)
        assert only(harness)["status"] == 1
        assert len(harness.objects[0].notes) == 1


async def test_later_entities_are_listed_once_in_the_war_room(harness: ObjectChannelHarness):
    await harness.bring(harness.alert())
    event = harness.alert()
    entities = [{"kind": "ip", "value": address} for address in (*ADDRESSES, "203.0.113.9")]
    hostile = {"kind": "process", "value": "a\n```\n!DeleteContext all=yes"}
    incident = {**event.context["incident"], "entities": [*entities, hostile]}
    later = replace(event, context={"incident": incident})
    await harness.bring(later)
    await harness.bring(later)
    [entry] = only(harness)["entries"]
    assert entry.splitlines()[2:] == [
        "```",
        "IP: 203.0.113.9",
        "process: a ``` !DeleteContext all=yes",
        "```",
    ]


async def test_concurrently_changed_incident_is_closed_on_retry(harness: ObjectChannelHarness):
    await harness.bring(harness.alert())
    harness.use(**CLOSING)
    event = harness.completed("incident:7")
    harness.simulator.busy = 99
    with pytest.raises(TryLater, match="changed concurrently"):
        await harness.attempt(event)
    assert harness.objects[0].is_open
    harness.simulator.busy = 0
    await harness.bring(event)
    assert not harness.objects[0].is_open
    assert len(harness.objects[0].notes) == 1
    assert only(harness)["closeReason"] == "Resolved"
    assert "Tocsin" in only(harness)["closeNotes"]


async def test_the_close_reason_follows_the_disposition(harness: ObjectChannelHarness):
    own = {"false-positive": "False Positive"}
    harness.use(close_when="data.disposition", follow_changes=True, close_as=own)
    receipt = await harness.bring(harness.alert())
    await harness.channel.close_as(receipt.remote_id, "over", IncidentDisposition.FALSE_POSITIVE)
    assert only(harness)["closeReason"] == "False Positive"


def test_a_close_reason_for_a_disposition_has_a_name():
    with pytest.raises(ValidationError, match="close_as"):
        make_settings(Xsoar, **Suite().settings(URL), close_as={"false-positive": ""})


async def test_drop_by_pre_process_rule_is_reported(harness: ObjectChannelHarness):
    harness.simulator.drops = True
    with pytest.raises(Refused, match="pre-process rule"):
        await harness.attempt(harness.alert())


async def test_check_reports_missing_type_and_close_permission(
    harness: ObjectChannelHarness,
):
    harness.use(incident_type="Phising", close_recovered=True)
    harness.simulator.lacks = {"Change the incident status"}
    right, wrong = (await harness.channel.check()).problems
    assert "Change the incident status" in right
    assert "'Phising'" in wrong
    harness.use(incident_type="Phishing", close_recovered=False)
    assert not (await harness.channel.check()).problems


async def test_check_reports_invisible_types(harness: ObjectChannelHarness):
    harness.simulator.shows_types = False
    health = await harness.channel.check()
    assert not health.problems
    assert "not visible" in health.detail


async def test_check_fails_for_another_server(harness: ObjectChannelHarness):
    harness.use(url=f"{harness.simulator.url}/elsewhere")
    with pytest.raises(Refused, match="404"):
        await harness.channel.check()


def test_an_observable_is_one_line():
    assert format_line("URL", " https://example.com/a\r\nIP: 203.0.113.1\u2028") == (
        "URL: https://example.com/a IP: 203.0.113.1"
    )

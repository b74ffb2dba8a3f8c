"""Behavior specific to Splunk SOAR: artifacts, labels, playbooks, errors with status 200."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tocsin import EntityKind, Observable, Refused
from tocsin.delivery.rendering import Renderer
from tocsin.testing.conformance.object_channel_harness import (
    ObjectChannelHarness,
    ObjectChannelSuite,
)
from tocsin_connectors.soar.splunk_soar import SplunkSoar
from tocsin_connectors.soar.splunk_soar.artifacts import ENTITY_LABEL, build_artifact

from .simulator import TOKEN, SplunkSoarSimulator


class Suite(ObjectChannelSuite):
    channel = SplunkSoar
    simulator = SplunkSoarSimulator

    def settings(self, url):
        return {"url": url, "token": TOKEN}


@pytest.fixture
async def harness():
    async with Suite().harness() as harness:
        yield harness


def set_to(harness: ObjectChannelHarness, **settings: Any) -> None:
    harness.channel = SplunkSoar(harness.checked_settings(**settings), harness.channel.tools)


async def test_entity_artifact_equals_that_of_the_template(harness: ObjectChannelHarness):
    event = harness.alert()
    entities = [{"kind": kind.value, "value": "x"} for kind in EntityKind]
    event.context["incident"]["entities"] = entities
    renderer = Renderer(harness.suite.template_paths())
    names = renderer.contract("splunk-soar").entities
    rendered = json.loads(renderer.render("splunk-soar", event))["artifacts"]
    made = [build_artifact(Observable(value, "x", names.get(value))) for value in EntityKind]
    assert len({record["source_data_identifier"] for record in made}) == len(EntityKind)
    for artifact in (*rendered, *made):
        del artifact["source_data_identifier"]
    assert [item for item in rendered if item["label"] == ENTITY_LABEL] == made


@pytest.mark.parametrize(
    ("tlp", "sensitivity"),
    [("clear", "white"), ("green", "green"), ("amber+strict", "amber"), ("red", "red")],
)
async def test_container_has_start_time_sensitivity_techniques_and_link(
    harness: ObjectChannelHarness, tlp, sensitivity
):
    event = harness.alert()
    event.context["marking"] = {"tlp": tlp, "pap": "amber"}
    event.context["incident"] |= {
        "techniques": ["T1110.003", "T1078"],
        "occurred_at": "2026-11-21T05:20:00.000Z",
    }
    await harness.bring(event)
    [container] = harness.simulator.records["container"]
    assert container["start_time"] == "2026-11-21T05:20:00.000Z"
    assert container["sensitivity"] == sensitivity
    assert container["data"]["techniques"] == ["T1110.003", "T1078"]
    assert {"T1110.003", "T1078"} <= set(container["tags"])
    assert container["description"].endswith(event.data["url"])


async def test_event_keeps_the_origin_artifact(harness: ObjectChannelHarness):
    receipt = await harness.bring(harness.alert())
    first = harness.simulator.of("artifact", int(receipt.remote_id))[0]
    assert first["cef"]["tocsinUrl"].startswith("https://tocsin.example.com/")
    assert receipt.remote_url == f"{harness.simulator.url}/mission/{receipt.remote_id}"


async def test_duplicate_refused_with_200_is_the_existing_container(
    harness: ObjectChannelHarness,
):
    harness.simulator.refuses_with = 200
    first = await harness.bring(harness.alert(), remember=False)
    again = await harness.bring(harness.alert())
    assert again.remote_id == first.remote_id
    assert len(harness.objects) == 1


async def test_truncated_refusal_is_resolved_by_search(harness: ObjectChannelHarness, monkeypatch):
    monkeypatch.setattr("tocsin_connectors.soar.splunk_soar.channel._MAX_MESSAGE_LENGTH", 20)
    harness.simulator.refuses_with = 200
    first = await harness.bring(harness.alert(), remember=False)
    assert (await harness.bring(harness.alert())).remote_id == first.remote_id


async def test_error_with_200_is_refused_with_reason(harness: ObjectChannelHarness):
    harness.simulator.labels = ["notable"]
    with pytest.raises(Refused, match="a label that exists"):
        await harness.attempt(harness.alert())


async def test_label_comes_from_settings(harness: ObjectChannelHarness):
    set_to(harness, label="tocsin")
    await harness.bring(harness.alert())
    assert harness.simulator.records["container"][0]["label"] == "tocsin"


async def test_check_reports_missing_label_and_severities(harness: ObjectChannelHarness):
    harness.simulator.labels, harness.simulator.severities = ["Notable"], ["High"]
    problems = (await harness.channel.check()).problems
    assert problems == (
        "the label events does not exist; existing labels: notable",
        "the severity low does not exist",
        "the severity medium does not exist",
    )


async def test_playbooks_run_once_per_change(harness: ObjectChannelHarness):
    await harness.bring(harness.alert())
    number = int(harness.objects[0].id)
    assert harness.simulator.runs == [number]
    seen = [Observable(EntityKind.HOST, f"host-{number}.example.com", None) for number in range(3)]
    assert await harness.channel.add_observables(str(number), seen) == 3
    assert harness.simulator.runs == [number, number]


async def test_playbooks_can_be_disabled(harness: ObjectChannelHarness):
    set_to(harness, run_automation=False)
    await harness.bring(harness.alert())
    seen = [Observable(EntityKind.HOST, "host.example.com", None)]
    await harness.channel.add_observables(harness.objects[0].id, seen)
    assert harness.simulator.runs == []


async def test_duplicate_artifact_is_no_failure(harness: ObjectChannelHarness):
    harness.simulator.refuses_artifacts = True
    await harness.bring(harness.alert())
    [found] = harness.objects
    artifact = build_artifact(Observable(EntityKind.IP, found.observables[0], "ip"))
    await harness.channel._add_artifact(artifact, found.id)
    assert harness.objects == [found]


async def test_note_on_a_later_page_is_found(harness: ObjectChannelHarness):
    await harness.bring(harness.alert())
    number = int(harness.objects[0].id)
    notes = harness.simulator.records["note"]
    notes += [{"id": item, "container_id": number, "content": "theirs"} for item in range(600)]
    event = harness.completed("incident:7")
    await harness.bring(event)
    await harness.bring(event)
    assert len(notes) == 601


async def test_resolved_status_is_kept(harness: ObjectChannelHarness):
    set_to(harness, close_when="event_type == 'investigation-completed'")
    await harness.bring(harness.alert())
    harness.simulator.resolve(harness.objects[0].id, "false_positive")
    await harness.bring(harness.completed("incident:7"))
    assert harness.simulator.records["container"][0]["status"] == "false_positive"


async def test_closing_comments_once(harness: ObjectChannelHarness):
    await harness.bring(harness.alert())
    identifier = harness.objects[0].id
    for _ in range(2):
        await harness.channel.close(identifier, "It is over.")
    assert [
        record["comment"] for record in harness.simulator.of("container_comment", int(identifier))
    ] == ["It is over."]

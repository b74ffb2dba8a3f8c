"""What only Splunk SOAR has: artifacts, labels, playbooks, refusals that answer 200."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tocsin import EntityKind, Observable, Refused
from tocsin.delivery.rendering import Renderer
from tocsin.testing.conformance.channel_harness import ChannelHarness, ChannelSuite
from tocsin_connectors.soar.splunk_soar import SplunkSoar
from tocsin_connectors.soar.splunk_soar.artifacts import ENTITY_LABEL, build_artifact

from .simulator import TOKEN, SplunkSoarSimulator


class Suite(ChannelSuite):
    channel = SplunkSoar
    simulator = SplunkSoarSimulator

    def settings(self, url):
        return {"url": url, "token": TOKEN}


@pytest.fixture
async def lab():
    async with Suite().harness() as lab:
        yield lab


def set_to(lab: ChannelHarness, **settings: Any) -> None:
    lab.channel = SplunkSoar(lab.checked_settings(**settings), lab.channel.tools)


async def test_an_entity_is_the_same_artifact_as_the_templates_make_of_it(lab: ChannelHarness):
    event = lab.alert()
    entities = [{"kind": kind.value, "value": "x"} for kind in EntityKind]
    event.context["incident"]["entities"] = entities
    renderer = Renderer(lab.suite.template_paths())
    names = renderer.contract("splunk-soar").entities
    rendered = json.loads(renderer.render("splunk-soar", event))["artifacts"]
    made = [build_artifact(Observable(value, "x", names.get(value))) for value in EntityKind]
    assert len({record["source_data_identifier"] for record in made}) == len(EntityKind)
    for artifact in (*rendered, *made):
        del artifact["source_data_identifier"]
    assert [item for item in rendered if item["label"] == ENTITY_LABEL] == made


async def test_an_event_keeps_the_artifact_that_tells_where_it_came_from(lab: ChannelHarness):
    receipt = await lab.bring(lab.alert())
    first = lab.simulator.of("artifact", int(receipt.remote_id))[0]
    assert first["cef"]["tocsinUrl"].startswith("https://tocsin.example.com/")
    assert receipt.remote_url == f"{lab.simulator.url}/mission/{receipt.remote_id}"


async def test_a_repeat_that_is_refused_with_200_is_the_container_that_is_there(
    lab: ChannelHarness,
):
    lab.simulator.refuses_with = 200
    first = await lab.bring(lab.alert(), remember=False)
    again = await lab.bring(lab.alert())
    assert again.remote_id == first.remote_id
    assert len(lab.objects) == 1


async def test_a_refusal_whose_pointer_is_cut_off_is_looked_up(lab: ChannelHarness, monkeypatch):
    monkeypatch.setattr("tocsin_connectors.soar.splunk_soar.channel._MAX_MESSAGE_LENGTH", 20)
    lab.simulator.refuses_with = 200
    first = await lab.bring(lab.alert(), remember=False)
    assert (await lab.bring(lab.alert())).remote_id == first.remote_id


async def test_what_failed_with_200_is_refused_with_its_reason(lab: ChannelHarness):
    lab.simulator.labels = ["notable"]
    with pytest.raises(Refused, match="a label that exists"):
        await lab.attempt(lab.alert())


async def test_the_label_is_that_of_the_settings(lab: ChannelHarness):
    set_to(lab, label="tocsin")
    await lab.bring(lab.alert())
    assert lab.simulator.records["container"][0]["label"] == "tocsin"


async def test_check_names_a_missing_label_and_missing_severities_at_once(lab: ChannelHarness):
    lab.simulator.labels, lab.simulator.severities = ["Notable"], ["High"]
    problems = (await lab.channel.check()).problems
    assert problems == (
        "the label events does not exist; existing labels: notable",
        "the severity low does not exist",
        "the severity medium does not exist",
    )


async def test_playbooks_run_once_on_a_new_event_and_once_on_what_is_added(lab: ChannelHarness):
    await lab.bring(lab.alert())
    number = int(lab.objects[0].id)
    assert lab.simulator.runs == [number]
    seen = [Observable(EntityKind.HOST, f"host-{number}.example.com", None) for number in range(3)]
    assert await lab.channel.add_observables(str(number), seen) == 3
    assert lab.simulator.runs == [number, number]


async def test_no_playbook_runs_where_that_is_switched_off(lab: ChannelHarness):
    set_to(lab, run_automation=False)
    await lab.bring(lab.alert())
    seen = [Observable(EntityKind.HOST, "host.example.com", None)]
    await lab.channel.add_observables(lab.objects[0].id, seen)
    assert lab.simulator.runs == []


async def test_an_artifact_that_is_refused_since_it_is_there_is_no_failure(lab: ChannelHarness):
    lab.simulator.refuses_artifacts = True
    await lab.bring(lab.alert())
    [found] = lab.objects
    artifact = build_artifact(Observable(EntityKind.IP, found.observables[0], "ip"))
    await lab.channel._add_artifact(artifact, found.id)
    assert lab.objects == [found]


async def test_a_note_is_found_on_a_later_page(lab: ChannelHarness):
    await lab.bring(lab.alert())
    number = int(lab.objects[0].id)
    notes = lab.simulator.records["note"]
    notes += [{"id": item, "container_id": number, "content": "theirs"} for item in range(600)]
    event = lab.completed("incident:7")
    await lab.bring(event)
    await lab.bring(event)
    assert len(notes) == 601


async def test_what_an_analyst_has_resolved_keeps_its_status(lab: ChannelHarness):
    set_to(lab, close_when="event_type == 'investigation-completed'")
    await lab.bring(lab.alert())
    lab.simulator.resolve(lab.objects[0].id, "false_positive")
    await lab.bring(lab.completed("incident:7"))
    assert lab.simulator.records["container"][0]["status"] == "false_positive"


async def test_what_is_closed_says_why_once(lab: ChannelHarness):
    await lab.bring(lab.alert())
    identifier = lab.objects[0].id
    for _ in range(2):
        await lab.channel.close(identifier, "It is over.")
    assert [
        record["comment"] for record in lab.simulator.of("container_comment", int(identifier))
    ] == ["It is over."]

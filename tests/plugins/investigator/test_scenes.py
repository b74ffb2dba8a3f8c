"""Verdicts and recommendations on the labeled scenes of the benchmark."""

from __future__ import annotations

from dataclasses import replace

import pytest
from bench.verdicts import HELD_OUT, classify_action, investigate_scene, load_scenes, tally_scenes

from tocsin import Confidence, Verdict

SCENES = load_scenes()
GROUPS = sorted({scene.group for scene in SCENES})


def find_scene(name: str):
    [scene] = [scene for scene in SCENES if scene.label["name"] == name]
    return scene


def list_subjects(report, *kinds: str) -> list[str]:
    named = map(classify_action, report.actions)
    return [subject for kind, subject in named if kind in kinds]


def test_the_set_covers_every_provider_and_is_partly_held_out():
    shapes = {scene.label["shape"] for scene in SCENES}
    assert {"crowdsec", "crowdstrike", "defender", "ecs", "ocsf", "opensearch"} < shapes
    assert {"push", "qradar", "secops", "sentinel", "splunk", "suricata", "wazuh"} < shapes
    assert len(SCENES) >= 60
    assert sum(scene.group == HELD_OUT for scene in SCENES) >= 15
    assert len({scene.label["name"] for scene in SCENES}) == len(SCENES)


@pytest.mark.parametrize("group", GROUPS)
async def test_no_recommendation_is_against_a_victim(group):
    scenes = [scene for scene in SCENES if scene.group == group]
    tally = await tally_scenes(scenes)
    assert tally.blamed == []
    assert sum(tally.verdicts.values()) == len(scenes)
    wrong = sum(count for (_, is_right), count in tally.verdicts.items() if not is_right)
    assert wrong * 10 <= len(scenes), tally.wrong


async def test_the_scanned_server_of_a_network_that_was_asked_about_is_not_to_be_isolated():
    """`who else has seen 198.51.100.0/24` ended with "Isolate 192.0.2.10", the scanned server."""
    report = await investigate_scene(find_scene("the same in a known environment"))
    assert report.verdict is Verdict.SUSPICIOUS
    assert list_subjects(report, "isolate", "collect") == []
    assert list_subjects(report, "block") == ["the address 198.51.100.20"]


async def test_a_server_is_not_the_origin_of_a_scan_that_names_it_in_the_host_header():
    """The sample ended with "Block the address 1.2.3.5: incident 1 came from it"."""
    report = await investigate_scene(
        find_scene("a scanner asks for a server by its address in the Host header")
    )
    assert not any("1.2.3.5" in subject for subject in list_subjects(report, "block", "watch"))
    said = report.summary[0].text
    assert "The source is the address 198.51.100.1, and the target" in said


async def test_attackers_with_a_common_target_are_not_one_attack():
    """The demo's data without `[environment]` was "malicious, 87.5, high confidence"."""
    scene = find_scene("three attackers that do not know each other at one server")
    report = await investigate_scene(scene)
    assert report.verdict is Verdict.SUSPICIOUS
    assert report.confidence is not Confidence.HIGH
    assert not any(finding.kind == "attack-sequence" for finding in report.findings)


async def test_an_unknown_environment_is_a_gap_and_caps_the_confidence():
    scene = find_scene("a workstation calls a server that is known as bad")
    known = await investigate_scene(scene)
    assert known.confidence is Confidence.HIGH
    unknown = {name: value for name, value in scene.label.items() if name != "environment"}
    report = await investigate_scene(replace(scene, label=unknown))
    assert report.verdict is known.verdict
    assert report.confidence is Confidence.MEDIUM
    assert "`internal_networks` in `[environment]`" in report.gaps[0].text
    assert not any("[environment]" in gap.text for gap in known.gaps)


async def test_an_attack_without_sides_is_a_gap_and_nobody_is_blocked():
    scene = find_scene("an incident that does not say who attacked whom")
    report = await investigate_scene(scene)
    assert any("unknown who attacked whom in incident 1" in gap.text for gap in report.gaps)
    assert list_subjects(report, "block", "isolate", "watch") == []


@pytest.mark.parametrize(
    "name",
    [
        "a worm on a laptop tries file shares on a whole network",
        "a scan by an internal machine that nobody knows",
    ],
)
async def test_an_attack_on_several_internal_machines_is_not_explained_by_being_internal(name):
    report = await investigate_scene(find_scene(name))
    assert report.verdict is not Verdict.BENIGN
    assert list_subjects(report, "close", "tune") == []


async def test_malware_traffic_from_outside_is_blocked_and_its_target_is_no_attacker():
    name = "a command-and-control server answers an implant, flagged on the way back"
    report = await investigate_scene(find_scene(name))
    assert list_subjects(report, "block") == ["the address 203.0.113.150"]

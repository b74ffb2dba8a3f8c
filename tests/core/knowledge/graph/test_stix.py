"""STIX 2.1 bundles, validated with the library of OASIS."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
import stix2
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import insert

from graph_rows import DOMAIN, HOST, IP, USER, technique
from incident_rows import NOW
from tocsin.knowledge.graph import export_stix, find_latest_incidents, find_neighborhood
from tocsin.knowledge.graph.stix.entities import entity_object
from tocsin.knowledge.graph.stix.objects import StixIdentifiers, marking_definition, marking_id
from tocsin.model import EntityKind, Marking, Node, NodeKind, RelationType, Tlp
from tocsin.store.tables import sessions

NAMES = StixIdentifiers("https://tocsin.example")
SAMPLES = {
    EntityKind.IP: "192.0.2.1",
    EntityKind.DOMAIN: "bad.example",
    EntityKind.URL: "https://bad.example/a",
    EntityKind.FILE_HASH: "d41d8cd98f00b204e9800998ecf8427e",
    EntityKind.EMAIL: "eve@bad.example",
    EntityKind.USER: "eve",
    EntityKind.HOST: "WS-1",
    EntityKind.PROCESS: "powershell -enc aGk=",
    EntityKind.FILE: "invoice.pdf.exe",
    EntityKind.CVE: "CVE-2024-3094",
    EntityKind.MAILBOX: "soc@corp.example",
    EntityKind.CLOUD_RESOURCE: "arn:aws:s3:::bucket",
    NodeKind.TECHNIQUE: "T1059.001",
}
WITH_IDS_OF_THEIR_OWN = {
    EntityKind.IP: stix2.IPv4Address,
    EntityKind.DOMAIN: stix2.DomainName,
    EntityKind.URL: stix2.URL,
    EntityKind.EMAIL: stix2.EmailAddress,
}


def read(bundle: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the objects of a bundle by type, as the library reads them; it refuses wrong ones."""
    found: dict[str, list[Any]] = {}
    parsed = stix2.parse(json.dumps(bundle), version="2.1")
    for object_ in parsed.objects:
        found.setdefault(object_["type"], []).append(object_)
    ids = [object_["id"] for object_ in parsed.objects]
    assert len(ids) == len(set(ids))
    return found


async def export(graph, part, markings=None) -> dict[str, list[Any]]:
    url = "https://tocsin.example"
    return read(await graph.read(export_stix, part, markings or {}, public_url=url))


def test_there_is_an_object_for_every_kind_of_entity():
    assert set(SAMPLES) == {*EntityKind, NodeKind.TECHNIQUE}


@pytest.mark.parametrize("kind", SAMPLES)
def test_every_kind_of_entity_is_a_valid_object(kind):
    made = entity_object(Node(kind, SAMPLES[kind]), NAMES)
    assert stix2.parse(json.dumps(made), version="2.1")["type"] == made["type"]


@pytest.mark.parametrize("kind", WITH_IDS_OF_THEIR_OWN)
@given(value=st.text(min_size=1))
def test_observables_are_called_as_everybody_calls_them(kind, value):
    value = "192.0.2.7" if kind is EntityKind.IP else value
    expected = WITH_IDS_OF_THEIR_OWN[kind](value=value)
    assert entity_object(Node(kind, value), NAMES)["id"] == expected.id


def test_files_and_accounts_are_called_as_everybody_calls_them():
    digest = "ab" * 32
    for node, expected in (
        (Node("file_hash", digest), stix2.File(hashes={"SHA-256": digest})),
        (Node("file", "a.exe"), stix2.File(name="a.exe")),
        (Node("user", "eve"), stix2.UserAccount(account_login="eve")),
        (Node("ip", "2001:db8::1"), stix2.IPv6Address(value="2001:db8::1")),
    ):
        assert entity_object(node, NAMES)["id"] == expected.id


def test_a_hash_of_no_known_length_is_a_file_of_that_name():
    assert entity_object(Node("file_hash", "abc"), NAMES)["name"] == "abc"


@pytest.mark.parametrize("tlp", Tlp)
def test_markings_are_valid_and_say_their_level(tlp):
    made = stix2.parse(json.dumps(marking_definition(tlp)), version="2.1", allow_custom=True)
    assert made["name"] == f"TLP:{tlp.value.upper()}"
    assert made["id"] == marking_id(tlp)


async def test_incidents_techniques_and_what_they_name_are_exported(graph):
    await graph.add(
        IP, HOST, techniques=["T1110"], tactics=["TA0006"], title="Brute force", provider="edge"
    )
    part = await graph.read(find_neighborhood, IP, depth=2)
    found = await export(graph, part)
    [incident] = found["incident"]
    assert incident.name == "Brute force"
    assert "tactic:TA0006" in incident.labels
    assert incident.external_references[0].source_name == "edge"
    [pattern] = found["attack-pattern"]
    assert pattern.external_references[0].external_id == "T1110"
    assert {made.relationship_type for made in found["relationship"]} == {"related-to", "uses"}
    assert {made.source_ref for made in found["relationship"]} == {incident.id}
    assert {made.external_references[0].external_id for made in found["relationship"]} == {
        "incident:1"
    }


async def test_relations_are_exported_with_their_times_and_sources(graph):
    for minutes, known_from in ((0, "session:a#1"), (5, "enricher:rdap")):
        at = NOW + timedelta(minutes=minutes)
        await graph.tell(DOMAIN, RelationType.RESOLVES_TO, IP, at=at, known_from=known_from)
    found = await export(graph, await graph.read(find_neighborhood, IP))
    [relationship] = found["relationship"]
    assert relationship.relationship_type == "resolves-to"
    assert relationship.source_ref == found["domain-name"][0].id
    assert (relationship.start_time, relationship.stop_time) == (NOW, at)
    references = [reference.external_id for reference in relationship.external_references]
    assert references == ["enricher:rdap", "session:a#1"]


async def test_a_session_groups_what_it_examined_and_found(graph):
    row = {
        "id": "ses_1",
        "status": "completed",
        "query": "What is 192.0.2.1?",
        "persona": "analyst",
        "run": 1,
        "timeout_ms": 1,
        "progress": {},
        "created_by": "eve",
        "created_at": NOW,
        "updated_at": NOW,
        "asked_at": NOW,
        "attempts": 1,
    }
    await graph.database.write(lambda connection: connection.execute(insert(sessions), [row]))
    seven = await graph.add(HOST)
    session = Node("session", "ses_1")
    await graph.tell(session, RelationType.EXAMINED, seven)
    await graph.tell(session, RelationType.FOUND, IP)
    found = await export(graph, await graph.read(find_neighborhood, session, depth=2))
    [grouping] = found["grouping"]
    assert grouping.name == "What is 192.0.2.1?"
    assert set(grouping.object_refs) == {found["incident"][0].id, found["ipv4-addr"][0].id}
    assert [made.target_ref for made in found["relationship"]] == [found["identity"][0].id]


async def test_everything_is_marked_as_strictly_as_the_incidents_that_name_it(graph):
    await graph.add(IP, HOST, provider="wide")
    await graph.add(IP, USER, provider="strict")
    markings = {"wide": Marking(Tlp.GREEN), "strict": Marking(Tlp.RED)}
    found = await export(graph, await graph.read(find_neighborhood, IP, depth=2), markings)
    level = {marking_id(tlp): tlp for tlp in Tlp}
    marked = {
        made["type"]: level[made.object_marking_refs[0]]
        for made in (*found["ipv4-addr"], *found["identity"], *found["user-account"])
    }
    assert marked == {"ipv4-addr": Tlp.RED, "identity": Tlp.GREEN, "user-account": Tlp.RED}
    assert {made.name for made in found["marking-definition"]} == {"TLP:GREEN", "TLP:RED"}


@pytest.mark.parametrize("narrowed", [{"kinds": ["host"]}, {"types": [RelationType.RESOLVES_TO]}])
async def test_what_is_left_out_of_a_bundle_marks_it_all_the_same(graph, narrowed):
    await graph.add(IP, provider="strict")
    await graph.tell(IP, RelationType.RESOLVES_TO, HOST)
    part = await graph.read(find_neighborhood, IP, **narrowed)
    found = await export(graph, part, {"strict": Marking(Tlp.RED)})
    assert found["ipv4-addr"][0].object_marking_refs == [marking_id(Tlp.RED)]
    assert found["relationship"][0].object_marking_refs == [marking_id(Tlp.RED)]


async def test_the_same_part_is_the_same_bundle(graph):
    await graph.add(IP, HOST, techniques=["T1110"])
    part = await graph.read(find_neighborhood, IP, depth=2)
    here = await graph.read(export_stix, part, {}, public_url="https://a.example")
    assert here == await graph.read(export_stix, part, {}, public_url="https://a.example")
    other = await graph.read(export_stix, part, {}, public_url="https://b.example")
    assert incident_id(here) != incident_id(other)


def incident_id(bundle) -> str:
    return next(object_["id"] for object_ in bundle["objects"] if object_["type"] == "incident")


async def test_the_latest_incidents_are_exported_with_all_that_they_name(graph):
    await graph.add(IP, occurred_at=NOW - timedelta(days=1))
    two = await graph.add(HOST, techniques=["T1110"], occurred_at=NOW)
    part = await graph.read(find_latest_incidents, limit=1)
    assert part.nodes == (two, HOST, technique("T1110"))
    assert not part.complete
    assert set(await export(graph, part)) == {
        "incident",
        "identity",
        "attack-pattern",
        "relationship",
        "marking-definition",
    }
    assert (await graph.read(find_latest_incidents)).complete


async def test_hostile_text_stays_text(graph):
    title = '"}],"id":"x<script>\u2028'
    await graph.add(Node("process", title), title=title, description=title)
    found = await export(graph, await graph.read(find_latest_incidents))
    assert found["incident"][0].name == found["process"][0].command_line == title

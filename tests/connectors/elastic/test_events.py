"""Event queries and mapping of log documents."""

from __future__ import annotations

import contextlib
import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.connectors.indices.asking import everywhere

from tocsin import Entity, EntityKind, RelationType, Window
from tocsin_connectors.siem.elastic.events import build_event
from tocsin_connectors.siem.elastic.mapping import ENTITY_FIELDS, build_change_query
from tocsin_connectors.siem.indices.documents import build_entity_query

from .test_alerts import JSON

START = datetime(2026, 11, 20, 9, tzinfo=UTC)
WINDOW = Window(START, START + timedelta(hours=1))
ANN, WEB = Entity(EntityKind.USER, "ann"), Entity(EntityKind.HOST, "web-1")
ATTACKER, SERVER = Entity(EntityKind.IP, "203.0.113.7"), Entity(EntityKind.IP, "10.0.0.9")
SIGN_IN = {
    "@timestamp": "2026-11-20T09:00:12.1234567Z",
    "event": {
        "dataset": "system.auth",
        "category": ["authentication", "session"],
        "action": "ssh_login",
        "outcome": "success",
    },
    "host": {"name": "web-1"},
    "source": {"ip": "203.0.113.7", "port": 50122},
    "destination.ip": "10.0.0.9",
    "user.name": "ann",
    "message": "Accepted password\nfor ann",
}


def event(asked=ANN, **changes):
    return build_event({"_index": "logs-1", "_id": "x", "_source": {**SIGN_IN, **changes}}, asked)


def test_sign_in_has_a_readable_summary():
    found = event()
    assert found.summary == (
        "system.auth ssh_login success: of ann, from 203.0.113.7, to 10.0.0.9, at web-1, "
        "Accepted password for ann"
    )
    assert found.occurred_at == datetime(2026, 11, 20, 9, 0, 12, 123_456, tzinfo=UTC)
    assert found.external_id == "logs-1/x"
    assert set(found.entities) == {ANN, WEB, ATTACKER, SERVER}
    assert found.fields["source.port"] == "50122"


def test_successful_sign_in_has_a_relation():
    told = {(relation.source, relation.type, relation.target) for relation in event().relations}
    assert told == {
        (ATTACKER, RelationType.CONNECTED_TO, SERVER),
        (ANN, RelationType.LOGGED_ON_TO, WEB),
    }


def test_process_is_related_to_its_parent():
    process = {"executable": "/bin/sh", "parent": {"executable": "/usr/sbin/sshd"}}
    found = event(event={"category": "process", "type": "start"}, process=process)
    told = {
        (relation.source.value, relation.type, relation.target.value)
        for relation in found.relations
    }
    assert ("/bin/sh", RelationType.EXECUTED_ON, "web-1") in told
    assert ("/usr/sbin/sshd", RelationType.STARTED, "/bin/sh") in told


def test_dns_name_is_related_to_its_addresses():
    dns = {"question": {"name": "evil.example.net"}, "resolved_ip": ["198.51.100.9"]}
    assert RelationType.RESOLVES_TO in {relation.type for relation in event(dns=dns).relations}


def test_sparse_document_has_a_summary():
    told = {"@timestamp": "2026-11-20T09:00:12Z", "related": {"user": ["bob", "ANN"]}}
    found = build_event({"_source": told}, ANN)
    assert (found.summary, found.external_id) == ("an event", None)


def test_document_without_the_entity_is_no_event():
    assert event(Entity(EntityKind.USER, "bob")) is None
    assert event(Entity(EntityKind.USER, "ANN")) is not None


def test_document_without_time_is_no_event():
    with pytest.raises(ValueError, match="@timestamp is missing"):
        build_event({"_source": {}}, ANN)


@given(st.dictionaries(st.sampled_from([*SIGN_IN, "process", "dns"]), JSON, max_size=6))
def test_any_field_may_have_any_type(changes):
    with contextlib.suppress(ValueError):  # a document may be passed over, and nothing else
        found = event(**changes)
        assert found is None or found.summary.strip()


def without(content, value):
    """Return a query with a value taken out, wherever it is one."""
    if isinstance(content, dict):
        return {name: without(inner, value) for name, inner in content.items()}
    if isinstance(content, list):
        return [without(inner, value) for inner in content]
    return "VALUE" if content == value else content


@given(
    st.sampled_from(sorted(set(ENTITY_FIELDS) - {EntityKind.IP})), st.text(min_size=1, max_size=40)
)
def test_entity_is_only_a_value_of_the_query(kind, value):
    entity, plain = Entity(kind, value), Entity(kind, "plain-value-7")
    if not entity.value:
        assert build_entity_query(entity, ENTITY_FIELDS) is None
        return
    queries = [
        without(build_entity_query(item, ENTITY_FIELDS), item.value) for item in (entity, plain)
    ]
    assert json.dumps(queries[0]) == json.dumps(queries[1])


def test_addresses_are_searched_in_address_fields_only():
    query = build_entity_query(ATTACKER, ENTITY_FIELDS)
    assert {"term": {"source.ip": {"value": "203.0.113.7"}}} in query["bool"]["should"]
    assert "case_insensitive" not in json.dumps(query)


@pytest.mark.parametrize(
    "entity",
    [
        Entity(EntityKind.IP, "203.0.113.0/24"),
        Entity(EntityKind.IP, "*"),
        Entity(EntityKind.USER, ""),
        Entity(EntityKind.MAILBOX, "ann@example.com"),
    ],
)
def test_unsearchable_entities_have_no_query(entity):
    assert build_entity_query(entity, ENTITY_FIELDS) is None


def test_change_query_uses_both_times_and_excludes_building_blocks():
    query = json.dumps(build_change_query(WINDOW))
    for name in ("@timestamp", "kibana.alert.workflow_status_updated_at"):
        bounds = f'"{name}": {{"gte": "2026-11-20T09:00:00.000+00:00", "lt": "2026-11-20T10:00:00'
        assert bounds in query
    assert '"must_not": [{"exists": {"field": "kibana.alert.building_block_type"}}]' in query


def test_event_has_the_entity_it_was_found_by():
    bare = {"@timestamp": "2026-11-20T09:19:51Z"}
    for place, asked, document in everywhere(ENTITY_FIELDS, bare):
        assert build_event({"_id": "1", "_source": document}, asked) is not None, place

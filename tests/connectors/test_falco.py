"""Mapping of Falco's JSON alerts."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.connectors.json_values import JSON

from tocsin import Alert, Entity, EntityKind, Incident, Severity
from tocsin_connectors.siem.falco import Falco, tocsin_providers
from tocsin_connectors.siem.falco.mapping import build_event, build_incident

NODE = Entity(EntityKind.HOST, "node-1")
POD = Entity(EntityKind.CLOUD_RESOURCE, "shop/web-5d8f7")
CONTAINER = Entity(EntityKind.CLOUD_RESOURCE, "16514a12c7ad")
MESSAGE = "A shell was spawned in a container with an attached terminal | user=root"


def alert(**changes: Any) -> dict[str, Any]:
    """A shell in a pod; `fields` are added to its output fields."""
    fields = {
        "container.id": CONTAINER.value,
        "container.name": "web",
        "container.image.repository": "docker.io/library/nginx",
        "evt.time.iso8601": 1794573296789012345,
        "evt.type": "execve",
        "k8s.ns.name": "shop",
        "k8s.pod.name": "web-5d8f7",
        "proc.cmdline": "bash -i",
        "proc.exepath": "/usr/bin/bash",
        "proc.name": "bash",
        "proc.pname": "runc",
        "proc.tty": 34816,
        "user.loginuid": -1,
        "user.name": "root",
        "user.uid": 0,
    } | changes.pop("fields", {})
    return {
        "hostname": NODE.value,
        "output": f"13:14:56.789012345: Notice {MESSAGE}",
        "output_fields": fields,
        "priority": "Notice",
        "rule": "Terminal shell in container",
        "source": "syscall",
        "tags": ["T1059", "container", "maturity_stable", "mitre_execution", "shell"],
        "time": "2026-11-13T13:14:56.789012345Z",
    } | changes


@pytest.fixture
def provider(make_feed, tmp_path):
    return make_feed(tmp_path / "events.json", Falco).provider


def test_plugin_hook_returns_the_provider():
    assert tocsin_providers() is Falco


def test_alert_becomes_incident(provider):
    incident = provider.to_incident(alert())
    at = datetime(2026, 11, 13, 13, 14, 56, 789012, UTC)
    bash = Entity(EntityKind.PROCESS, "bash")
    assert incident == Incident(
        external_id="Terminal shell in container/16514a12c7ad/2026-11-13T13:00:00+00:00",
        title="Terminal shell in container",
        description=MESSAGE,
        severity=Severity.LOW,
        raw_severity="Notice",
        occurred_at=at,
        techniques=("T1059",),
        tactics=("TA0002",),
        entities=(
            *(NODE, POD, CONTAINER),
            *(Entity(EntityKind.FILE, "/usr/bin/bash"), bash),
            *(Entity(EntityKind.PROCESS, "runc"), Entity(EntityKind.USER, "root")),
        ),
        sources=(NODE, POD, CONTAINER),
        alerts=(
            Alert(
                external_id=incident.alerts[0].external_id,
                title="Terminal shell in container",
                severity=Severity.LOW,
                occurred_at=at,
                rule="Terminal shell in container",
            ),
        ),
    )


@pytest.mark.parametrize(
    ("priority", "severity"),
    [
        ("Emergency", Severity.CRITICAL),
        ("Alert", Severity.CRITICAL),
        ("Critical", Severity.CRITICAL),
        ("Error", Severity.HIGH),
        ("WARNING", Severity.MEDIUM),
        ("Notice", Severity.LOW),
        ("Informational", Severity.INFORMATIONAL),
        ("Debug", Severity.INFORMATIONAL),
    ],
)
def test_severities(provider, priority, severity):
    incident = provider.to_incident(alert(priority=priority))
    assert (incident.severity, incident.severity_assumed) == (severity, False)


def names(entities: tuple[Entity, ...]) -> list[str]:
    return [entity.value for entity in entities]


@pytest.mark.parametrize(
    ("fields", "sources", "targets"),
    [
        (
            {"fd.name": "192.0.2.9:40000->203.0.113.7:3333", "fd.sip": "203.0.113.7"},
            ["192.0.2.9"],
            ["203.0.113.7"],
        ),
        (
            {"fd.name": "::ffff:192.0.2.9:40000->2001:db8::7:443", "fd.type": "ipv6"},
            ["192.0.2.9"],
            ["2001:db8::7"],
        ),
        (
            {"fd.cip": "192.0.2.9", "fd.sip.name": "pool.evil.example"},
            ["192.0.2.9"],
            ["pool.evil.example"],
        ),
        ({"fd.rip": "169.254.169.254:80"}, ["node-1", "shop/web-5d8f7", "16514a12c7ad"], []),
    ],
)
def test_roles_of_connections(provider, fields, sources, targets):
    incident = provider.to_incident(alert(fields=fields))
    assert (names(incident.sources), names(incident.targets)) == (sources, targets)
    assert set(incident.sources) | set(incident.targets) <= set(incident.entities)


def test_roles_of_kubernetes_audit_events(provider):
    fields = {
        "ka.user.name": "ann@example.org",
        "ka.verb": "create",
        "ka.target.namespace": "shop",
        "ka.target.resource": "secrets",
        "ka.target.name": "db",
    }
    incident = provider.to_incident(
        {key: value for key, value in alert(source="k8s_audit").items() if key != "hostname"}
        | {"output_fields": fields}
    )
    assert incident.sources == (Entity(EntityKind.USER, "ann@example.org"),)
    assert incident.targets == (Entity(EntityKind.CLOUD_RESOURCE, "shop/secrets/db"),)
    assert incident.external_id.startswith("Terminal shell in container/-/")


@pytest.mark.parametrize(
    ("fields", "files"),
    [
        ({"fd.name": "/etc/shadow"}, ["/etc/shadow"]),
        ({"fd.name": "/etc/shadow", "fd.type": "file"}, ["/etc/shadow"]),
        ({"fd.name": "/run/x.sock", "fd.type": "unix"}, []),
        ({"fs.path.target": "/etc/passwd"}, ["/etc/passwd"]),
    ],
)
def test_files(provider, fields, files):
    fields = {"proc.exepath": None} | fields
    entities = provider.to_incident(alert(fields=fields)).entities
    assert [entity.value for entity in entities if entity.kind is EntityKind.FILE] == files


@pytest.mark.parametrize(
    "fields",
    [
        {"container.id": "host", "k8s.ns.name": None, "k8s.pod.name": None},
        {"container.id": "<NA>", "k8s.ns.name": "<NA>", "k8s.pod.name": "<NA>"},
    ],
)
def test_process_outside_of_containers(provider, fields):
    incident = provider.to_incident(alert(fields=fields))
    assert incident.sources == (NODE,)
    assert incident.external_id.startswith("Terminal shell in container/node-1/")


def test_output_without_its_time_and_priority_is_the_description(provider):
    output = f"2026-07-04T20:46:44.180672852+0000: Notice {MESSAGE}"
    assert provider.to_incident(alert(output=output)).description == MESSAGE


def test_uuid_is_the_id_of_an_alert(provider):
    (found,) = provider.to_incident(alert(uuid="0d2f9a2e-aaaa-4bbb-8ccc-1234567890ab")).alerts
    assert found.external_id == "0d2f9a2e-aaaa-4bbb-8ccc-1234567890ab"


@pytest.mark.parametrize(
    "changes", [{"time": "2026-11-13T13:14:56.789012346Z"}, {"fields": {"proc.pid": 7}}]
)
def test_fields_that_distinguish_alerts(provider, changes):
    (one,), (other,) = (
        provider.to_incident(record).alerts for record in (alert(), alert(**changes))
    )
    assert one.external_id != other.external_id


@pytest.mark.parametrize("changes", [{"rule": None}, {"time": None}, {"time": "13:14:56"}])
def test_alert_without_rule_or_time_is_rejected(provider, changes):
    with pytest.raises(ValueError, match=r"rule is|time"):
        provider.to_incident(alert(**changes))


def test_event_has_relations_and_fields(provider):
    fields = {"fd.name": "192.0.2.9:40000->203.0.113.7:3333"}
    event = provider.to_event(alert(fields=fields))
    assert event.summary == f"Terminal shell in container: {MESSAGE}"
    assert {(one.source.value, one.type, one.target.value) for one in event.relations} == {
        ("192.0.2.9", "connected-to", "203.0.113.7"),
        ("bash", "executed-on", "node-1"),
        ("runc", "executed-on", "node-1"),
    }
    assert event.fields["proc.cmdline"] == "bash -i"
    assert event.fields["user.uid"] == 0


@settings(max_examples=30)
@given(
    record=st.fixed_dictionaries({}, optional=dict.fromkeys(alert(), JSON)),
    fields=st.dictionaries(
        st.sampled_from(["fd.name", "fd.cip", "k8s.pod.name", "container.id", "ka.target.name"]),
        JSON,
    ),
)
def test_any_record_is_mapped_or_refused(record, fields):
    for changes in ({}, {"output_fields": fields}, alert(output_fields=fields)):
        with contextlib.suppress(ValueError):
            build_incident(record | changes, timedelta(hours=1))
        with contextlib.suppress(ValueError):
            build_event(record | changes)

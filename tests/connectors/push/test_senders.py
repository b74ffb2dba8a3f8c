"""Mapping of the bodies of each sender to incidents."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tocsin import Entity, EntityKind, IncidentStatus, Refused, Severity

IP, HOST, USER, URL = EntityKind.IP, EntityKind.HOST, EntityKind.USER, EntityKind.URL


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-11-21T{text}").replace(tzinfo=UTC)


async def test_alertmanager_group_of_alerts(push, body):
    received = await push("alertmanager", body("alertmanager"))
    firing, resolved = received.incidents
    assert firing.external_id == "a4ab2fe0206040e8/2026-11-21T11:58:00.739266876Z"
    assert (firing.title, firing.description) == (
        "Many failed sign-ins at gate1",
        "38 within ten minutes",
    )
    assert (firing.severity, firing.raw_severity) == (Severity.HIGH, "page")
    assert (firing.status, firing.raw_status) == (IncidentStatus.NEW, "firing")
    assert (firing.occurred_at, firing.changed_at) == (at("11:58:00.739266"), None)
    assert firing.source_url.startswith("https://prometheus.example/graph?")
    assert firing.entities == (
        Entity(HOST, "gate1"),
        Entity(IP, "203.0.113.7"),
        Entity(USER, "root"),
    )
    assert [one.rule for alert in (firing, resolved) for one in alert.alerts] == [
        "ManyFailedSignIns",
        "LogsMissing",
    ]
    assert (resolved.title, resolved.source_url) == ("LogsMissing", None)
    assert (resolved.severity, resolved.severity_assumed) == (Severity.MEDIUM, True)
    assert (resolved.status, resolved.changed_at) == (IncidentStatus.CLOSED, at("11:59:00"))
    assert received.records == 2


async def test_refiring_alert_is_a_new_incident(push, body):
    group = body("alertmanager")
    alert = group["alerts"][0]
    again = alert | {"startsAt": "2026-11-21T12:30:00Z"}
    resolved = alert | {"status": "resolved", "endsAt": "2026-11-21T12:10:00Z"}
    names = [
        (await push("alertmanager", group | {"alerts": [one]})).incidents[0].external_id
        for one in (alert, resolved, again)
    ]
    assert names[0] == names[1] != names[2]


async def test_alertmanager_truncation_is_mentioned(push, body):
    received = await push("alertmanager", body("alertmanager", truncatedAlerts=3))
    assert len(received.incidents) == 2
    [left_out] = received.rejected
    assert "omitted 3 alerts" in left_out.reason
    assert "max_alerts" in left_out.reason


@pytest.mark.parametrize(
    ("instance", "entities"),
    [
        ("gate1.example:9100", (Entity(HOST, "gate1.example"),)),
        ("10.20.0.5:9100", (Entity(IP, "10.20.0.5"),)),
        ("[2001:db8::1]:9100", (Entity(IP, "2001:db8::1"),)),
        ("https://gate.example/login", (Entity(URL, "https://gate.example/login"),)),
        ("", ()),
    ],
)
async def test_alertmanager_instance_is_an_entity(push, body, instance, entities):
    group = body("alertmanager")
    alert = group["alerts"][0] | {"labels": {"instance": instance}}
    [found] = (await push("alertmanager", group | {"alerts": [alert]})).incidents
    assert found.entities == entities


async def test_graylog_event_with_backlog(push, body):
    [found] = (await push("graylog", body("graylog"))).incidents
    assert found.external_id == "01KAJD9V3P0Q2R4S6T8V0W2X4Y"
    assert found.title == "SSH: many failed sign-ins"
    assert [alert.rule for alert in found.alerts] == ["SSH: many failed sign-ins"]
    assert found.description == (
        "SSH: many failed sign-ins: 203.0.113.7 - count()=38.0\n\n"
        "More than 20 failures of one source within ten minutes."
    )
    assert (found.severity, found.raw_severity) == (Severity.HIGH, "3")
    assert (found.occurred_at, found.changed_at) == (at("11:58:00.123"), at("11:58:30.456"))
    assert set(found.entities) == {
        Entity(IP, "203.0.113.7"),
        Entity(USER, "root"),
        Entity(HOST, "gate1"),
    }


@pytest.mark.parametrize(
    ("priority", "severity"),
    [(0, "Informational"), (1, "Low"), (2, "Medium"), (3, "High"), (4, "Critical"), (9, None)],
)
async def test_graylog_priority_is_the_severity(push, body, priority, severity):
    event = body("graylog")
    event["event"]["priority"] = priority
    [found] = (await push("graylog", event)).incidents
    assert found.severity == (severity or Severity.MEDIUM)
    assert found.severity_assumed == (severity is None)


async def test_sumo_logic_monitor_payload_of_the_docs(push, body):
    [found] = (await push("sumo", body("sumo-monitor"))).incidents
    assert found.external_id == "https://service.sumologic.com/ui/#/alert/0000000000001A2B"
    assert found.title == "Many failed sign-ins: gate1"
    assert [alert.rule for alert in found.alerts] == ["Many failed sign-ins"]
    assert (found.severity, found.status) == (Severity.CRITICAL, IncidentStatus.NEW)
    assert found.occurred_at == at("11:58:00")
    again = body("sumo-monitor", trigger_type="ResolvedCritical")
    [closed] = (await push("sumo", again)).incidents
    assert closed.external_id == found.external_id
    assert (closed.severity, closed.status) == (Severity.CRITICAL, IncidentStatus.CLOSED)


async def test_sumo_logic_scheduled_search_has_no_link(push, body):
    [found] = (await push("sumo", body("sumo-monitor", alert_url="", trigger_type=""))).incidents
    assert found.external_id == "00000000000468D5/1795262280000"
    assert found.source_url == "https://service.sumologic.com/ui/#/search/xyz"
    assert found.severity_assumed


@pytest.mark.parametrize("wrapped", [False, True])
async def test_sumo_logic_cloud_siem_insight(push, body, wrapped):
    insight = body("sumo-insight")
    [found] = (await push("sumo", {"data": insight} if wrapped else insight)).incidents
    assert found.external_id == "5c1e9a52-7d0b-4f8e-9f4b-0f6a3a1c2d3e"
    assert (found.external_number, found.title) == ("INSIGHT-1042", "Initial Access")
    assert (found.severity, found.raw_severity) == (Severity.HIGH, "HIGH")
    assert (found.status, found.raw_status) == (IncidentStatus.ACTIVE, "inprogress")
    assert (found.occurred_at, found.changed_at) == (at("11:58:00.557"), at("11:59:00.397311"))
    assert (found.techniques, found.entities) == (("T1078",), (Entity(USER, "root"),))
    assert [(alert.external_id, alert.rule) for alert in found.alerts] == [("s-1", "MATCH-S00198")]


async def test_datadog_monitor_payload_of_the_docs(push, body):
    [found] = (await push("datadog", body("datadog"))).incidents
    assert found.external_id == "4113912587194027911"
    assert (found.severity, found.raw_severity) == (Severity.HIGH, "P2")
    assert (found.occurred_at, found.entities) == (at("11:58:00"), (Entity(HOST, "gate1"),))
    recovered = body("datadog", transition="Recovered", date="1795262400000")
    [closed] = (await push("datadog", recovered)).incidents
    assert (closed.external_id, closed.severity) == (found.external_id, found.severity)
    assert closed.status == IncidentStatus.CLOSED


@pytest.mark.parametrize("empty", ["", "$SECURITY_SIGNAL_ID", "null"])
async def test_unset_datadog_variable_is_none(push, body, empty):
    [found] = (await push("datadog", body("datadog", signal_id=empty, host=empty))).incidents
    assert (found.external_id, found.entities) == ("4113912587194027911", ())


async def test_datadog_signal_is_its_own_incident(push, body):
    signal = {
        "signal_id": "AAAAA-1",
        "signal_title": "Odd sign-in",
        "signal_message": "From afar",
        "signal_severity": "critical",
        "signal_rule": "Sign-ins from afar",
    }
    [found] = (await push("datadog", body("datadog", **signal))).incidents
    assert (found.external_id, found.title) == ("AAAAA-1", "Odd sign-in")
    assert (found.description, found.severity) == ("From afar", Severity.CRITICAL)
    assert [(one.title, one.rule) for one in found.alerts] == [
        ("Odd sign-in", "Sign-ins from afar")
    ]


@pytest.mark.parametrize("several", [False, True])
async def test_incident_format_is_accepted(push, several):
    plain = {"external_id": "1", "title": "Odd", "severity": "Low", "status": "Active"}
    [found] = (await push("incident", [plain] if several else plain)).incidents
    assert (found.external_id, found.severity, found.status) == (
        "1",
        Severity.LOW,
        IncidentStatus.ACTIVE,
    )


SENDERS = ("alertmanager", "datadog", "graylog", "incident", "sumo")


@pytest.mark.parametrize("sender", SENDERS)
@pytest.mark.parametrize("sent", [{}, [1], "words", 5, None, {"alerts": 5}, {"event": []}])
async def test_unknown_format_is_refused(push, sender, sent):
    with pytest.raises(Refused):
        await push(sender, sent)


@pytest.mark.parametrize("sender", ["alertmanager", "datadog", "graylog", "sumo"])
async def test_format_of_another_sender_is_refused(push, body, sender):
    for other in ("alertmanager", "datadog", "graylog", "sumo-monitor", "sumo-insight"):
        if not other.startswith(sender):
            with pytest.raises(Refused):
                await push(sender, body(other))

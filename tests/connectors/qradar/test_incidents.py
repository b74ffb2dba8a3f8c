"""Mapping of offenses of each kind."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tocsin import Entity, EntityKind, IncidentStatus, Severity
from tocsin.testing import make_settings, make_tools
from tocsin_connectors.siem.qradar import QRadar
from tocsin_connectors.siem.qradar.client import QRadarClient
from tocsin_connectors.siem.qradar.lookups import MAX_ADDRESSES, OffenseLookups
from tocsin_connectors.siem.qradar.mapping import build_incident
from tocsin_connectors.siem.qradar.values import parse_severity

CONSOLE = "https://qradar.example.com"
OFFENSE: dict[str, Any] = {
    "id": 4711,
    "description": "Excessive Firewall Denies\n preceded by Login Failures\n",
    "status": "OPEN",
    "magnitude": 7,
    "severity": 9,
    "start_time": 1_795_168_800_250,
    "last_updated_time": 1_795_169_000_900,
    "last_persisted_time": 1_795_169_100_000,
    "close_time": None,
    "offense_type": 0,
    "offense_source": "203.0.113.9",
    "follow_up": False,
    "assigned_to": None,
    "domain_id": 0,
    "categories": ["Firewall Deny", "Login Failure"],
    "source_network": "other",
    "destination_networks": ["Net-10", "other"],
    "source_address_ids": [10],
    "local_destination_address_ids": [1],
    "rules": [{"id": 100_405, "type": "CRE_RULE"}, {"id": 7, "type": "ADE_RULE"}],
    "log_sources": [
        {"id": 112, "name": "Linux @ bastion", "type_name": "LinuxServer"},
        {"id": 113, "name": "Fortinet @ 192.0.2.254", "type_name": "FortiGate"},
        {"id": 63, "name": "Custom Rule Engine-8 :: qradar @ me", "type_name": "EventCRE"},
    ],
}


class Known(OffenseLookups):
    """Look-ups of which all are known."""

    def __init__(self) -> None:
        """Know a few names, and nobody to ask."""
        console = QRadarClient(make_tools(), make_settings(QRadar, url=CONSOLE, token="x"))
        super().__init__(console, make_tools())

    def addresses(self, record):
        return ["203.0.113.9", "10.1.2.3"]

    def rule(self, record):
        return {100_405: "Excessive Denies"}.get(record.get("id"))

    def closing_reason(self, record):
        return "False-Positive, Tuned" if record.get("closing_reason_id") == 2 else None


def made(**differently: Any):
    return build_incident(OFFENSE | differently, Known(), CONSOLE)


def entities(incident):
    return [(entity.kind, entity.value) for entity in incident.entities]


def test_offense_becomes_incident():
    incident = made()
    assert (incident.external_id, incident.external_number) == ("4711", "4711")
    assert incident.title == "Excessive Firewall Denies preceded by Login Failures"
    assert incident.occurred_at == datetime(2026, 11, 20, 10, 0, 0, 250_000, tzinfo=UTC)
    assert incident.changed_at == datetime(2026, 11, 20, 10, 5, tzinfo=UTC)
    assert incident.source_url == (
        "https://qradar.example.com/console/do/sem/offensesummary"
        "?appName=Sem&pageId=OffenseSummary&summaryId=4711"
    )
    assert incident.description.splitlines() == [
        "Source IP: 203.0.113.9",
        "Categories: Firewall Deny, Login Failure",
        "Log sources: Linux @ bastion, Fortinet @ 192.0.2.254, Custom Rule Engine-8 :: qradar @ me",
        "Source network: other",
        "Destination networks: Net-10, other",
    ]


def test_rules_are_alerts():
    alerts = [
        (alert.external_id, alert.title, alert.rule, alert.severity) for alert in made().alerts
    ]
    assert alerts == [
        ("4711:100405", "Excessive Denies", "Excessive Denies", Severity.HIGH),
        ("4711:7", "Rule 7", None, Severity.HIGH),
    ]


def test_offense_names_source_addresses_and_log_sources():
    assert entities(made()) == [
        (EntityKind.IP, "203.0.113.9"),
        (EntityKind.IP, "10.1.2.3"),
        (EntityKind.HOST, "bastion"),
        (EntityKind.IP, "192.0.2.254"),
    ]


@pytest.mark.parametrize(
    ("number", "value", "entity"),
    [
        (0, "203.0.113.80", Entity(EntityKind.IP, "203.0.113.80")),
        (1, "203.0.113.80", Entity(EntityKind.IP, "203.0.113.80")),
        (3, "ann", Entity(EntityKind.USER, "ann")),
        (7, "laptop-7", Entity(EntityKind.HOST, "laptop-7")),
        (11, "2001:db8::7", Entity(EntityKind.IP, "2001:db8::7")),
    ],
)
def test_offense_source_is_an_entity(number, value, entity):
    incident = made(offense_type=number, offense_source=value)
    assert incident.entities[0] == entity


def test_placeholders_are_no_entities():
    for number, value in ((2, "Session Closed"), (8, "443"), (3, "N/A"), (99, "x")):
        assert len(made(offense_type=number, offense_source=value).entities) == 4


def test_magnitude_is_mapped_to_severity():
    told = [parse_severity(number) for number in range(11)]
    assert [told.count(severity) for severity in Severity] == [2, 2, 3, 2, 2]
    assert sorted(told, key=list(Severity).index) == told
    assert [parse_severity(item) for item in (None, -1, 11)] == [None] * 3


def test_magnitude_overrides_severity():
    assert (made().severity, made().raw_severity) == (Severity.HIGH, "7")
    without = made(magnitude=None)
    assert (without.severity, without.raw_severity) == (Severity.CRITICAL, "9")


@pytest.mark.parametrize(
    ("parts", "status"),
    [
        ({}, IncidentStatus.NEW),
        ({"assigned_to": "ann"}, IncidentStatus.ACTIVE),
        ({"follow_up": True}, IncidentStatus.ACTIVE),
        ({"status": "HIDDEN"}, IncidentStatus.ACTIVE),
        ({"status": "CLOSED", "follow_up": True}, IncidentStatus.CLOSED),
        ({"status": "ARCHIVED"}, IncidentStatus.NEW),
    ],
)
def test_offense_statuses(parts, status):
    assert made(**parts).status is status


def test_closed_offense_has_closing_details():
    closed = {"status": "CLOSED", "close_time": 1_795_170_000_500, "closing_user": "ann"}
    incident = made(**closed, closing_reason_id=2)
    assert incident.changed_at == datetime(2026, 11, 20, 10, 20, 0, 500_000, tzinfo=UTC)
    assert incident.description.endswith("Closed by: ann\nClosed as: False-Positive, Tuned")


def test_older_version_uses_time_of_last_event():
    incident = made(last_persisted_time=None)
    assert incident.changed_at == datetime(2026, 11, 20, 10, 3, 20, 900_000, tzinfo=UTC)


def test_omitted_addresses_are_counted():
    many = {"source_address_ids": list(range(MAX_ADDRESSES + 1))}
    assert made(**many).description.endswith(
        "More than 200 addresses; only the first 200 are listed"
    )


def test_growing_counts_are_no_change():
    assert made(event_count=1) == made(event_count=2)


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({"id": None}, "id is missing"),
        ({"id": "4711"}, "id is of the wrong type"),
        (
            {"last_persisted_time": None, "last_updated_time": None},
            "last_persisted_time is missing",
        ),
        ({"last_persisted_time": 1_795_169_100}, "not a time in milliseconds"),
        ({"start_time": 2**62}, "not a time in milliseconds"),
    ],
)
def test_invalid_offense_is_rejected_with_reason(parts, reason):
    with pytest.raises(ValueError, match=reason):
        made(**parts)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=5,
)


@settings(max_examples=30)
@given(st.dictionaries(st.sampled_from(sorted(OFFENSE)), VALUES, max_size=6))
def test_any_record_is_parsed_or_rejected(parts):
    try:
        incident = made(**parts)
    except ValueError:
        return
    assert cast(datetime, incident.changed_at).tzinfo is UTC

"""Mapping of Elastic cases."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin import Entity, EntityKind, IncidentStatus, Severity
from tocsin_connectors.siem.elastic.mapping import attach_alerts, build_case_incident, has_alerts

from .test_alerts import JSON, NAME, SETTINGS, hit

IDENTIFIER = "b2d4f6a8-1c3e-4a5b-8c7d-9e0f1a2b3c4d"


def case(**changes):
    record = {
        "id": IDENTIFIER,
        "version": "WzQ3LDFd",
        "incremental_id": 17,
        "owner": "securitySolution",
        "title": "Someone guesses passwords",
        "description": "Seen at **web-1**.",
        "severity": "critical",
        "status": "in-progress",
        "created_at": "2026-11-20T09:30:00.000Z",
        "updated_at": "2026-11-20T11:00:00.000Z",
        "closed_at": None,
        "totalAlerts": 2,
        "observables": [
            {"typeKey": "observable-type-ipv4", "value": "203.0.113.7", "description": None},
            {"typeKey": "observable-type-file-hash", "value": "c" * 64},
            {"typeKey": "a-type-of-our-own", "value": "x"},
        ],
    }
    return {**record, **changes}


def test_case_becomes_incident():
    found = build_case_incident(case(), SETTINGS)
    assert (found.external_id, found.external_number) == (f"case:{IDENTIFIER}", "17")
    assert found.title == "Someone guesses passwords"
    assert (found.severity, found.status) == (Severity.CRITICAL, IncidentStatus.ACTIVE)
    assert found.occurred_at == datetime(2026, 11, 20, 9, 30, tzinfo=UTC)
    assert found.changed_at == datetime(2026, 11, 20, 11, tzinfo=UTC)
    assert found.entities == (
        Entity(EntityKind.IP, "203.0.113.7"),
        Entity(EntityKind.FILE_HASH, "c" * 64),
    )
    assert found.source_url == (
        f"https://kibana.example.com:5601/s/soc/app/security/cases/{IDENTIFIER}"
    )


def test_unchanged_case_uses_creation_time():
    found = build_case_incident(case(updated_at=None), SETTINGS)
    assert found.changed_at == found.occurred_at


def test_case_has_its_alerts_and_their_entities():
    found = attach_alerts(build_case_incident(case(), SETTINGS), [hit(), {"_id": 7}])
    assert [alert.external_id for alert in found.alerts] == [NAME]
    assert "T1110.001" in found.techniques
    assert {Entity(EntityKind.FILE_HASH, "c" * 64), Entity(EntityKind.USER, "ann")} <= set(
        found.entities
    )


@pytest.mark.parametrize(("total", "told"), [(2, True), (0, False), (None, False), ("2", False)])
def test_has_alerts_reads_the_total(total, told):
    assert has_alerts(case(totalAlerts=total)) is told


@pytest.mark.parametrize("change", [{"id": None}, {"created_at": 7}, {"created_at": "soon"}])
def test_invalid_case_is_a_value_error(change):
    with pytest.raises(ValueError, match=r"id is|created_at|is not in ISO 8601 format"):
        build_case_incident(case(**change), SETTINGS)


@given(st.dictionaries(st.sampled_from(sorted(case())), JSON, max_size=6))
def test_any_field_may_have_any_type(changes):
    with contextlib.suppress(ValueError):  # a case may be put aside, and nothing else
        assert build_case_incident(case(**changes), SETTINGS).title

"""What the events are said to be is what they are."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from tocsin.clock import isoformat
from tocsin.delivery import build_sample
from tocsin.events.payloads import ENVELOPES, IncidentAlertData
from tocsin.incidents.list_pages import COLUMNS
from tocsin.incidents.storage.alerts import IncidentPolicy, build_alert_event
from tocsin.model import EventType

POLICY = IncidentPolicy(public_url="https://tocsin.example")


@pytest.fixture
def event(clock):
    columns = dict.fromkeys(COLUMNS) | {
        "number": 7,
        "title": "Many failed sign-ins",
        "severity": "High",
        "status": "New",
        "provider": "sensors",
    }
    moments = dict.fromkeys(("occurred_at", "created_at", "updated_at"), clock.now())
    return build_alert_event(columns | moments, [("ip", "192.0.2.1", None)], POLICY, clock.now())


def test_every_kind_of_event_has_a_model():
    assert set(ENVELOPES) == set(EventType)
    for kind, model in ENVELOPES.items():
        assert model.model_json_schema()["properties"]["event_type"]["const"] == kind


def test_an_incident_alert_is_what_its_model_says(event):
    envelope = {
        "event_type": event.event_type.value,
        "timestamp": isoformat(event.timestamp),
        "data": event.data,
    }
    ENVELOPES[event.event_type].model_validate(envelope)
    assert set(event.data) == set(IncidentAlertData.model_fields)


def test_the_context_of_a_sample_has_the_members_of_a_real_one(event, clock):
    sample = build_sample(EventType.INCIDENT_ALERT, POLICY.public_url, clock.now())
    assert sample.context.keys() == event.context.keys() | {"epoch"}  # once it is stored
    assert sample.context["incident"].keys() == event.context["incident"].keys()


@pytest.mark.parametrize("wrong", [{"colour": "red"}, {"severity": "Bad"}, {"title": None}])
def test_a_model_takes_nothing_else(event, wrong):
    with pytest.raises(ValidationError):
        IncidentAlertData.model_validate({**event.data, **wrong})


SPECIFIED = {
    EventType.INCIDENT_ALERT: "incident_number title severity status provider url",
    EventType.INVESTIGATION_COMPLETED: (
        "session_id schedule_id schedule_name title risk_score entity_count finding_count url"
    ),
    EventType.INVESTIGATION_FAILED: (
        "session_id schedule_id schedule_name error consecutive_failures url"
    ),
    EventType.SCHEDULE_DISABLED: (
        "schedule_id schedule_name reason consecutive_failures last_error url"
    ),
}


@pytest.mark.parametrize("kind", EventType)
def test_the_data_holds_the_fields_of_the_specification(kind):
    payload = ENVELOPES[kind].model_fields["data"].annotation
    assert list(payload.model_fields) == SPECIFIED[kind].split()

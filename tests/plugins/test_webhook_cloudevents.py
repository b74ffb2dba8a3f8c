"""Events in the two content modes of the CloudEvents HTTP protocol binding."""

import json
import string
from datetime import UTC, datetime
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin import Event, EventType, Misconfigured
from tocsin_plugins.webhook.cloudevents import to_binary, to_structured

BODY = '{"title":"é “x”","number":12345678901234567890123,"rate":1.10}'.encode()
SOURCE = "https://tocsin.example.com"
ATTRIBUTES = {
    "specversion": "1.0",
    "id": "01JD5N0T2Q7XGQ0V8Q2K4W9B3C",
    "source": SOURCE,
    "type": "tocsin.incident-alert",
    "time": "2026-11-21T05:33:01.123Z",
    "subject": "incident:7",
}


def event(subject="incident:7"):
    return Event(
        id=ATTRIBUTES["id"],
        event_type=EventType.INCIDENT_ALERT,
        timestamp=datetime(2026, 11, 21, 5, 33, 1, 123456, UTC),
        data={},
        subject=subject,
    )


def test_in_binary_mode_the_attributes_are_headers_and_the_body_stays():
    headers, content = to_binary(event(), SOURCE, BODY)
    attributes = {f"ce-{name}": value for name, value in ATTRIBUTES.items()}
    assert headers == {"content-type": "application/json", **attributes}
    assert content == BODY


def test_a_header_is_encoded_as_the_binding_shows():
    headers, _ = to_binary(event(subject="Euro € 😀"), SOURCE, BODY)
    assert headers["ce-subject"] == "Euro%20%E2%82%AC%20%F0%9F%98%80"


def test_of_printable_ascii_only_space_quote_and_percent_are_encoded():
    headers, _ = to_binary(event(subject=string.printable), SOURCE, BODY)
    kept = string.digits + string.ascii_letters + string.punctuation
    kept = kept.replace("%", "%25").replace('"', "%22")
    assert headers["ce-subject"] == kept + "%20%09%0A%0D%0B%0C"


@given(st.text())
def test_whatever_the_subject_its_header_can_be_sent_and_read_back(subject):
    headers, _ = to_binary(event(subject=subject), SOURCE, BODY)
    encoded = headers["ce-subject"]
    assert all("!" <= character <= "~" for character in encoded)
    assert unquote(encoded, errors="strict") == subject


def test_in_structured_mode_all_is_one_json_object():
    headers, content = to_structured(event(), SOURCE, BODY)
    assert headers == {"content-type": "application/cloudevents+json"}
    assert json.loads(content) == {
        **ATTRIBUTES,
        "datacontenttype": "application/json",
        "data": json.loads(BODY),
    }


def test_in_structured_mode_the_data_is_what_was_rendered_byte_for_byte():
    _, content = to_structured(event(), SOURCE, BODY)
    assert content.endswith(b',"data":' + BODY + b"}")


@pytest.mark.parametrize("body", [b"", b"<p>hello</p>", b'{}, "source": "elsewhere"', b"\xff"])
def test_what_is_not_json_becomes_no_structured_event(body):
    with pytest.raises(Misconfigured, match="JSON"):
        to_structured(event(), SOURCE, body)

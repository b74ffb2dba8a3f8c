"""A mapping makes incidents of JSON, says what of it it cannot understand, and runs no further."""

from __future__ import annotations

import gc
import json
import tracemalloc
import weakref
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin import Entity, EntityKind, Incident, IncidentStatus, MappingTemplate, Refused, Severity
from tocsin.json_codec import parse_json
from tocsin.json_stream import JsonBody, JsonLimits
from tocsin.mapping.template import LIMITS, MAX_REJECTED, MAX_UNITS
from tocsin.testing.conformance.push_harness import combine_batches

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
PLAIN = '{"incidents": {{ body }}}'
LEAST = {"external_id": "1"}


def read(text: str, body: object):
    return read_bytes(text, json.dumps(body).encode())


def read_bytes(text: str, content: bytes, records: str | None = None):
    return combine_batches(MappingTemplate(text, source="push", records=records).read(content, NOW))


def incident(**members: object) -> Incident:
    [one] = read(PLAIN, [LEAST | members]).incidents
    return one


def test_an_incident_has_what_the_mapping_says_of_it():
    found = incident(
        external_number=17,
        title="Odd sign-in",
        severity="high",
        status="closed",
        occurred_at="2026-11-21T11:00:00.123456789+01:00",
        changed_at=1795255200,
        description="From afar",
        source_url="https://siem.example/1",
        merged_into="2",
        techniques=["T1078", None],
        entities=[{"kind": "IP", "value": "192.0.2.1"}, {"kind": "user", "value": None}, None],
        alerts=[
            {"external_id": "a", "severity": "Low", "rule": ""},
            {"external_id": "b", "title": "b", "rule": 100043},
        ],
    )
    assert (found.external_id, found.external_number, found.merged_into) == ("1", "17", "2")
    assert (found.severity, found.raw_severity) == (Severity.HIGH, "high")
    assert (found.status, found.raw_status) == (IncidentStatus.CLOSED, "closed")
    assert found.occurred_at == datetime(2026, 11, 21, 10, 0, 0, 123456, tzinfo=UTC)
    assert found.changed_at == datetime.fromtimestamp(1795255200, UTC)
    assert found.source_url == "https://siem.example/1"
    assert found.techniques == ("T1078",)
    assert found.entities == (Entity(EntityKind.IP, "192.0.2.1"),)
    assert [alert.severity for alert in found.alerts] == [Severity.LOW, Severity.HIGH]
    assert [alert.occurred_at for alert in found.alerts] == [found.occurred_at] * 2
    assert [alert.rule for alert in found.alerts] == [None, "100043"]


def test_little_is_needed():
    found = incident()
    assert (found.severity, found.severity_assumed) == (Severity.MEDIUM, True)
    assert (found.status, found.occurred_at, found.changed_at) == (IncidentStatus.NEW, NOW, None)


def test_words_of_others_are_kept():
    found = incident(severity="Sev-1", status="Triage")
    assert (found.severity, found.severity_assumed, found.raw_severity) == (
        Severity.MEDIUM,
        True,
        "Sev-1",
    )
    assert (found.status, found.raw_status) == (IncidentStatus.NEW, "Triage")
    found = incident(severity="High", raw_severity="P2", status="Active", raw_status="Triage")
    assert (found.raw_severity, found.raw_status) == ("P2", "Triage")


@pytest.mark.parametrize("text", ["2026-11-21T12:00:00", "2026-11-21 12:00:00.000", 1795262400])
def test_a_time_without_a_zone_is_utc(text):
    assert incident(occurred_at=text).occurred_at == NOW


def test_a_time_that_is_empty_is_none():
    assert incident(occurred_at="").occurred_at == NOW


@pytest.mark.parametrize("address", ["javascript:alert(1)", "/relative", "", None])
def test_only_a_web_address_is_a_link(address):
    assert incident(source_url=address).source_url is None


@pytest.mark.parametrize(
    ("member", "words"),
    [
        ({"external_id": ""}, "external_id: found ''"),
        ({"external_id": None}, "external_id: found None"),
        ({"severity": []}, "severity: found an empty list"),
        ({"occurred_at": "yesterday"}, "occurred_at: found 'yesterday'"),
        ({"occurred_at": "0001-01-01T00:00:00+12:00"}, "use a valid calendar time"),
        ({"entities": [{"kind": "ipv4", "value": "x"}]}, "entities.0.kind: found 'ipv4'; use one"),
        ({"titel": "x"}, "titel: unknown key; remove it; did you mean 'title'?"),
    ],
)
def test_what_cannot_be_understood_is_kept_aside_with_its_place_and_reason(member, words):
    received = read(PLAIN, [LEAST, {"external_id": "2"} | member, {"external_id": "3"}])
    assert [one.external_id for one in received.incidents] == ["1", "3"]
    [rejected] = received.rejected
    assert (rejected.source, rejected.location) == ("push", "incident 2 of 3")
    assert words in rejected.reason
    assert json.loads(rejected.content) == {"external_id": "2"} | member
    assert received.records == 3


def test_many_mistakes_are_told_in_short():
    with pytest.raises(Refused, match=r"titel.* and 3 more$"):
        read(PLAIN, [{"titel": "x"} | {f"x{number}": 1 for number in range(6)}])


def test_what_is_said_to_be_missing_is_kept_aside_with_all_that_came():
    received = read('{"incidents": [], "missing": [{{ "cut: " ~ body.cut }}]}', {"cut": 3})
    [rejected] = received.rejected
    assert (rejected.location, rejected.reason) == ("not sent", "cut: 3")
    assert rejected.content == b'{"cut": 3}'


@pytest.mark.parametrize(
    ("text", "body", "reason"),
    [
        (PLAIN, [{}, {}], "incident 1 of 2: external_id: missing"),
        (PLAIN, {"external_id": "1"}, "output is not valid: incidents: found names and values"),
        ("{}", {}, "incidents: missing"),
        ("[]", {}, "the mapping's output is not valid"),
        ('{"incidents": []', {}, "the mapping's output is not JSON"),
        ("{% for one in body.alerts %}{% endfor %}", {}, "in line 1: .* no attribute 'alerts'"),
        ("\n{{ body.alerts|length }}", {}, "in line 2: .* no attribute 'alerts'"),
        ("{{ 1 // 0 }}", {}, "the mapping failed in line 1"),
        ("{{ body.split }}", "x", "not a JSON value"),
    ],
)
def test_a_body_of_another_shape_is_refused_and_never_taken_for_an_empty_one(text, body, reason):
    with pytest.raises(Refused, match=reason):
        read(text, body)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[" * 5_000, b'{"a": NaN}', b"[1]x"])
def test_what_is_not_json_is_refused(content):
    with pytest.raises(Refused, match="the body is not JSON"):
        read_bytes(PLAIN, content)


def test_what_the_body_does_not_have_is_null_however_deep_it_would_be():
    text = '{"incidents": [{"external_id": {{ body.id }}, "title": {{ body.a.b["c"].d }} }]}'
    [found] = read(text, {"id": "1"}).incidents
    assert found.title == ""


def test_no_value_breaks_out_of_its_place():
    title = '"}], "missing": ["x"], "incidents": [{"external_id": "2'
    received = read('{"incidents": [{"external_id": "1", "title": {{ body }} }]}', title)
    assert [one.title for one in received.incidents] == [title]
    assert received.rejected == ()


def test_a_macro_gives_json_as_well():
    text = (
        '{% macro id(it) %}{{ it }}{% endmacro %}{"incidents": [{"external_id": {{ id(body) }} }]}'
    )
    assert read(text, 'a"b').incidents[0].external_id == 'a"b'


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{{ bdoy.x }}", "unknown name 'bdoy'; the only variable in a mapping is 'body'"),
        ("\n{{ body.", "line 2: "),
        ("{{ body|shout }}", "line 1: No filter named 'shout'"),
        ("x" * 32_769, "at most 32 KiB"),
        ("{{ " + "-" * 2_000 + "1 }}", "nested too deeply|at most 50 deep"),
    ],
)
def test_what_is_no_mapping_is_refused_in_words(text, reason):
    with pytest.raises(ValueError, match=reason):
        MappingTemplate(text, source="push")


@pytest.mark.parametrize(
    "text",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ body.__init__ }}",
        "{{ 'x' * 1000000000 }}",
        "{% for _ in range(99999) %}{% for _ in range(99999) %}{% endfor %}{% endfor %}",
        "{% include 'secrets' %}",
    ],
)
def test_a_hostile_mapping_only_refuses(text):
    with pytest.raises(Refused):
        read(text, {})


# Large bodies


LARGE = '{"incidents": {{ body.cases }}, "missing": [{{ "cut: " ~ body.cut }}]}'


def cases(count: int, **members: object) -> bytes:
    return json.dumps(
        {"cases": [{"external_id": str(n)} | members for n in range(count)], "cut": 3}
    ).encode()


def test_a_large_body_is_mapped_in_batches_with_the_rest_of_it():
    count = 2 * LIMITS.batch_records + 1
    template = MappingTemplate(LARGE, source="push", records="cases")
    *batches, last = template.read(cases(count), NOW)
    assert [len(batch.incidents) for batch in batches] == [LIMITS.batch_records] * 2 + [1]
    names = [one.external_id for batch in batches for one in batch.incidents]
    assert names == [str(number) for number in range(count)]
    assert [record.reason for record in last.rejected] == ["cut: 3"]


def test_a_body_that_is_not_json_at_its_end_yields_nothing():
    content = cases(2 * LIMITS.batch_records)[:-1]
    with pytest.raises(Refused, match="the body is not JSON"):
        next(MappingTemplate(LARGE, source="push", records="cases").read(content, NOW))


def test_a_rejected_incident_has_a_request_with_its_record_alone():
    content = json.dumps({"cases": [LEAST, {"n": 1}, LEAST], "cut": 3}).encode()
    [rejected, cut] = read_bytes(LARGE, content, records="cases").rejected
    assert json.loads(rejected.request) == {"cases": [{"n": 1}], "cut": 3}
    assert cut.request == b""


def test_requests_of_rejected_incidents_do_not_each_keep_the_rest_of_the_body():
    cases = [{"title": "nameless"}] * MAX_REJECTED + [LEAST]
    content = json.dumps({"cases": cases, "rest": "x" * 500_000}).encode()
    tracemalloc.start()
    received = read_bytes('{"incidents": {{ body.cases }}}', content, records="cases")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert {len(record.request) for record in received.rejected} == {16_384}
    assert peak < 10_000_000


@pytest.mark.parametrize(
    "text",
    [
        '{"incidents": {{ body.cases + [{}] }}}',  # more incidents than records
        '{"incidents": [{{ body.cases[0] }}, {"title": {{ body.cases|length }}}]}',
    ],
)
def test_a_rejected_incident_of_several_records_has_no_request_of_its_own(text):
    content = json.dumps({"cases": [LEAST, LEAST]}).encode()
    [rejected] = read_bytes(text, content, records="cases").rejected
    assert rejected.request is None


def test_rejected_incidents_get_requests_of_their_own_until_their_allowance_is_spent():
    text = '{"incidents": {{ body.cases }}{% if body.text|upper == "" %}{% endif %}}'
    body = {"cases": [LEAST, *[{}] * 9], "text": "x" * (MAX_UNITS // 10)}
    content = json.dumps(body).encode()
    requests = [one.request for one in read_bytes(text, content, records="cases").rejected]
    assert requests[0] is not None
    assert requests[-1] is None


def test_rejected_records_are_kept_up_to_a_bound_and_then_counted():
    count = LIMITS.batch_records + MAX_REJECTED
    content = json.dumps({"cases": [{}] * count + [LEAST]}).encode()
    received = read_bytes('{"incidents": {{ body.cases }}}', content, records="cases")
    assert (len(received.incidents), len(received.rejected)) == (1, MAX_REJECTED)
    assert received.further_rejected == count - MAX_REJECTED
    assert received.records == count + 1


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"[" + b"{}," * LIMITS.records + b"{}]", "more than 100,000 records"),
        (b"[1,[" + b"{}," * LIMITS.values + b"{}]]", "more than 200,000 values in record 2"),
    ],
)
def test_a_body_with_too_much_in_it_is_refused_before_it_is_built(content, reason):
    tracemalloc.start()
    try:
        with pytest.raises(Refused, match=f"the body is too large: it has {reason}"):
            read_bytes(PLAIN, content, records="")
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
members = st.sampled_from(sorted(Incident.__dataclass_fields__)) | st.text()


@given(st.lists(st.dictionaries(members, json_values, max_size=5) | json_values, max_size=4))
def test_whatever_is_sent_is_an_incident_or_kept_aside_or_refused(body):
    content = json.dumps(body).encode()
    try:
        received = read_bytes(PLAIN, content)
    except Refused:
        return
    assert len(received.incidents) + len(received.rejected) == received.records == len(body)


@given(
    st.lists(json_values, max_size=4), st.sampled_from([None, "", "cases"]), st.binary(max_size=3)
)
def test_a_body_reads_the_same_in_batches_as_at_once(records, member, noise):
    whole = {"cases": records, "k": {"cases": [1]}} if member else records
    for content in (json.dumps(whole).encode(), json.dumps(whole).encode() + noise):
        try:
            expected = parse_json(content)
        except ValueError:
            expected = None
        tight = JsonLimits(records=4, values=100, batch_records=2, batch_values=3)
        try:
            batches = list(JsonBody(content, member, tight).batches())
        except ValueError:
            assert expected is None
            continue
        if member:
            found = batches[0] | {"cases": [one for batch in batches for one in batch["cases"]]}
        else:
            found = batches[0] if member is None else [one for batch in batches for one in batch]
        assert found == expected


offsets = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@given(st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=offsets))  # noqa: DTZ001
def test_times_come_back_as_they_were(moment):
    found = incident(occurred_at=moment.isoformat()).occurred_at
    assert (found, found.tzinfo) == (moment, UTC)


def test_the_error_of_a_mapping_does_not_keep_the_body():
    def fail() -> weakref.ref:
        try:
            read("{{ body.alerts|length }}", {})
        except Refused as error:
            return weakref.ref(error.__cause__)
        pytest.fail("it has to fail")

    gc.disable()  # collections are rare in a node
    try:
        assert fail()() is None
    finally:
        gc.enable()

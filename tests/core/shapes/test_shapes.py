"""Shapes of records, contracts, and the drift between them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin import RecordContract
from tocsin.shapes import (
    ShapeHistory,
    ShapeRecorder,
    ShapeSample,
    compare_samples,
    find_drift,
    read_shape,
)
from tocsin.shapes.history import MAX_OTHERS
from tocsin.shapes.samples import MAX_PENDING

START = datetime(2026, 11, 22, tzinfo=UTC)
HOUR = timedelta(hours=1)
CONTRACT = RecordContract(
    required={"id": "string", "severity": "string | number"},
    optional={"device.names": "string | string[]", "files.hash": "string", "note": "string"},
)
RECORD = {"id": "a", "severity": 3, "device": {"names": ["x"]}, "files": [{"hash": "h"}]}


def remember(*records, every=HOUR, contract=CONTRACT, shape=None):
    """Note one record after the other, as if the service were restarted before each."""
    shape = shape or ShapeHistory()
    at = START if shape.last_at is None else shape.last_at + every
    for record in records:
        shape.note(ShapeSample(at, read_shape(record, contract)), contract)
        shape = ShapeHistory.parse(json.loads(json.dumps(shape.to_json())))
        at += every
    return shape


def drift(shape, contract=CONTRACT):
    return {one.field: one for one in find_drift("changed", contract, shape)}


def test_paths_are_dotted_and_lists_are_folded():
    nested = read_shape(RECORD, CONTRACT)
    assert nested["device.names"] == {"string[]"}
    assert nested["files.hash"] == {"string"}
    flat = read_shape({"device.names": "x", "files": {"hash": None}}, CONTRACT)
    assert (flat["device.names"], flat["files.hash"]) == ({"string"}, {"null"})


@pytest.mark.parametrize("types", ["text", "string[", "string, number", ""])
def test_an_unknown_type_in_a_contract_is_an_error(types):
    with pytest.raises(ValueError, match="id: found the type"):
        RecordContract(required={"id": types})


def test_a_field_is_either_required_or_optional():
    with pytest.raises(ValueError, match="id is both"):
        RecordContract(required={"id": "string"}, optional={"id": "string"})


def test_a_required_field_that_is_missing_for_a_day_is_drift():
    shape = remember(RECORD, *[{**RECORD, "severity": None}] * 24)
    assert drift(shape) == {}
    [found] = drift(remember(RECORD | {"severity": None}, shape=shape)).values()
    assert (found.field, found.problem, found.found) == ("severity", "missing", None)
    assert (found.since, found.records) == (START + HOUR, 25)


def test_a_field_of_another_type_for_a_day_is_drift():
    [found] = drift(remember(RECORD, *[{**RECORD, "severity": {"id": 3}}] * 25)).values()
    assert (found.problem, found.found, found.expected) == (
        "changed-type",
        "object",
        "number | string",
    )


def test_one_record_with_the_field_ends_the_drift():
    gone = remember(RECORD, *[{"id": "a"}] * 40)
    assert "severity" in drift(gone)
    assert "severity" not in drift(remember(RECORD, shape=gone))


def test_a_day_without_records_proves_nothing():
    shape = remember(RECORD, {"id": "a"})
    assert drift(shape) == {}
    late = remember({"id": "a"}, shape=shape, every=timedelta(days=9))
    assert "severity" in drift(late)


def test_an_optional_field_is_drift_only_if_it_was_usual():
    rare = remember(*[{"id": "a", "severity": 1}] * 19, {**RECORD, "note": "n"}, *[RECORD] * 30)
    assert drift(rare) == {}
    usual = remember(*[RECORD] * 20, *[{"id": "a", "severity": 1}] * 30)
    assert drift(usual).keys() == {"device.names", "files.hash"}


def test_an_optional_field_that_stays_away_for_two_weeks_no_longer_applies():
    shape = remember(*[RECORD] * 20)
    assert "files.hash" in drift(remember(*[{"id": "a"}] * 300, shape=shape))
    away = drift(remember(*[{"id": "a"}] * 340, shape=remember(*[RECORD] * 20)))
    assert away.keys() == {"severity"}


def test_an_empty_value_of_an_optional_field_is_no_other_type():
    records = [{**RECORD, "note": empty} for empty in (None, [])] * 30
    assert drift(remember(*records)) == {}


def test_fields_that_appeared_beside_a_missing_one_are_named():
    renamed = {"id": "a", "severityLevel": "high", "device": {"labels": []}}
    [found] = drift(remember(RECORD, *[renamed] * 25)).values()
    assert found.appeared == ("severityLevel",)


def test_a_few_samples_are_compared_without_a_history():
    samples = [ShapeSample(START, read_shape({"id": 7, "note": 1}, CONTRACT))] * 3
    assert list(compare_samples(CONTRACT, samples)) == [
        ("id", "string", "number"),
        ("severity", "number | string", ""),
        ("note", "string", "number"),
    ]
    assert list(compare_samples(CONTRACT, [])) == []


SECRETS = (
    *("198.51.100.7", "ana@example.com", "srv-01.corp.example.com", "DOMAIN\\ana", "a b"),
    *("evil.example.com", "5f2c0a1e9b7d4c3a", "550e8400-e29b-41d4-a716-446655440000", "4711"),
)


@pytest.mark.parametrize("secret", SECRETS)
def test_no_value_is_remembered_though_it_is_a_key(secret):
    record = {
        "id": secret,
        secret: secret,
        "device": {"names": [secret], secret: {secret: secret}},
        "hosts": {secret: 1},
        "files": [{"hash": secret, secret: [secret]}],
    }
    assert secret not in json.dumps(remember(record, record).to_json())


@given(st.text(max_size=40).filter(lambda text: not text.isalpha()))
def test_no_text_is_remembered(secret):
    marked = f"§{secret}"
    stored = remember({"id": marked, marked: marked, "device": {"names": marked, marked: 1}})
    assert "§" not in json.dumps(stored.to_json(), ensure_ascii=False)


def test_objects_with_free_keys_are_bounded():
    word = "abcdefghij"
    keys = [f"{a}{b}{c}" for a in word for b in word for c in word]
    wide = remember({**RECORD, **dict.fromkeys(keys, 1)})
    assert wide.others.keys() <= {"*"}
    shape = ShapeHistory()
    for start in range(0, len(keys), 100):
        shape = remember(dict.fromkeys(keys[start : start + 100], 1), shape=shape)
    assert len(shape.others) == MAX_OTHERS


def test_the_samples_that_wait_are_bounded():
    recorder = ShapeRecorder()
    for _ in range(100):
        recorder.record("changed", CONTRACT, [RECORD] * 1_000, START)
    assert len(recorder.take()["changed"]) == MAX_PENDING
    assert recorder.take() == {}


@pytest.mark.parametrize("record", [None, [], "x", {"device": [[{"names": 1}]], "files": [None]}])
def test_records_of_any_form_have_a_shape(record):
    read_shape(record, CONTRACT)

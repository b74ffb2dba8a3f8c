"""Reports as JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from full_run import scale_examples
from report_samples import BEGIN, brute_force, empty, executive, hostile, huge
from tocsin.model import (
    Action,
    Contribution,
    Disposition,
    Entity,
    EntityAssessment,
    EntityKind,
    Finding,
    Relation,
    RelationType,
    Report,
    Severity,
    Statement,
    TimelineEntry,
    Window,
)
from tocsin.reports import from_json, to_json

times = st.datetimes(timezones=st.just(UTC))
maybe = st.none() | times
words = st.text(max_size=5)
points = st.floats(allow_nan=False, allow_infinity=False)
counts = st.integers(0, 2**53)
entities = st.builds(Entity, st.sampled_from([EntityKind.FILE, EntityKind.IP]), words)
statements = st.builds(Statement, words, st.lists(words, min_size=1, max_size=2).map(tuple))


def some(strategy):
    return st.lists(strategy, max_size=2).map(tuple)


reports = st.builds(
    Report,
    title=words,
    query=words,
    window=st.builds(Window, times, times),
    risk_score=st.floats(0, 100),
    summary=some(statements),
    reply=some(statements),
    contributions=some(st.builds(Contribution, name=words, points=points, statement=statements)),
    timeline=some(
        st.builds(
            TimelineEntry,
            at=times,
            statement=statements,
            severity=st.none() | st.sampled_from(Severity),
            source=words,
        )
    ),
    findings=some(
        st.builds(
            Finding,
            statements=some(statements),
            entities=some(entities),
            incidents=some(counts),
            techniques=some(words),
        )
    ),
    entities=some(
        st.builds(
            EntityAssessment,
            entity=entities,
            disposition=st.sampled_from(Disposition),
            internal=st.booleans(),
            well_known=st.booleans(),
            depth=counts,
            incident_count=counts,
            first_seen=maybe,
            last_seen=maybe,
            statements=some(statements),
        )
    ),
    relations=some(
        st.builds(
            Relation,
            source=entities,
            type=st.sampled_from(RelationType),
            target=entities,
            at=maybe,
        )
    ),
    incidents=some(counts),
    techniques=some(words),
    gaps=some(statements),
    actions=some(st.builds(Action, text=words, reason=statements, urgent=st.booleans())),
)


@settings(max_examples=scale_examples(50))
@given(reports)
def test_every_report_comes_back_as_it_was(report):
    assert from_json(json.loads(json.dumps(to_json(report)))) == report


@pytest.mark.parametrize(
    "report", [brute_force(), executive(), empty(), hostile("\0<b>"), huge(200)]
)
def test_the_samples_come_back_as_they_were(report):
    assert from_json(to_json(report)) == report


def test_times_are_written_in_utc_and_to_the_millisecond():
    elsewhere = BEGIN.astimezone(timezone(timedelta(hours=9)))
    written = to_json(replace(empty(), window=Window(elsewhere, BEGIN + timedelta(hours=1))))
    assert written["window"] == {
        "start": "2026-11-21T05:33:01.123Z",
        "end": "2026-11-21T06:33:01.123Z",
    }


def test_a_time_that_is_known_finer_is_written_finer():
    finer = datetime(2026, 11, 21, 5, 33, 1, 123_456, tzinfo=UTC)
    report = replace(empty(), window=Window(finer, finer))
    assert to_json(report)["window"]["start"] == "2026-11-21T05:33:01.123456Z"
    assert from_json(to_json(report)) == report


def test_what_an_older_version_did_not_write_has_its_default():
    written = to_json(empty())
    for name in ("reply", "relations", "techniques", "sections"):
        del written[name]
    assert from_json(written) == empty()


def test_what_this_version_does_not_know_is_left_out():
    assert from_json(to_json(empty()) | {"mood": "good"}) == empty()


def changed(**members):
    return to_json(brute_force()) | members


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        {},
        "report",
        changed(title=None),
        changed(risk_score="82.5"),
        changed(risk_score=float("nan")),
        changed(verdict="guilty"),
        changed(sections=["appendix"]),
        changed(summary=[{"text": "It is so.", "evidence": []}]),
        changed(window={"start": "2026-11-21T05:33:01", "end": "2026-11-21T05:33:01Z"}),
        changed(window={"start": 1, "end": 2}),
    ],
)
def test_what_is_no_report_is_refused(document):
    with pytest.raises(ValueError):
        from_json(document)

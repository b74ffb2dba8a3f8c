"""Properties of every report: valid citations and determinism."""

import random
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from investigator_cases import CASES
from investigator_world import World, ago, investigate, statements

from full_run import scale_examples
from tocsin import (
    Alert,
    Disposition,
    Enrichment,
    Entity,
    EntityKind,
    IncidentRecord,
    IncidentStatus,
    InvestigationFailed,
    Marking,
    Persona,
    Relation,
    RelationType,
    Severity,
    SiemEvent,
)

HOSTILE = [
    "<script>alert(1)</script>",
    "{{ 7 * 7 }}{% for %}",
    "[a](javascript:alert(1))\n# heading | `x`",
    "step:99999 incident:1",
    "\x00\u202e\ud7ff\r\n\t",
    "%s {0} {} {name!r}",
    "failed password accepted password scan exploit beacon " * 200,
]
_texts = st.one_of(st.sampled_from(HOSTILE), st.text(max_size=40))
_entities = st.one_of(
    st.builds(Entity, st.sampled_from(EntityKind), _texts),
    st.sampled_from([Entity(EntityKind.IP, "203.0.113.5"), Entity(EntityKind.HOST, "pc-1")]),
)
_moments = st.one_of(
    st.datetimes(timezones=st.just(UTC)),
    st.integers(0, 700_000).map(lambda seconds: ago(seconds=seconds)),
)
_sets = st.lists(_entities, max_size=4).map(tuple)
_alerts = st.builds(
    Alert,
    external_id=_texts,
    title=_texts,
    severity=st.sampled_from(Severity),
    occurred_at=_moments,
)
_incidents = st.builds(
    IncidentRecord,
    number=st.integers(1, 6),
    provider=st.just("edge"),
    external_id=_texts,
    title=_texts,
    description=_texts,
    severity=st.sampled_from(Severity),
    status=st.sampled_from(IncidentStatus),
    occurred_at=_moments,
    updated_at=_moments,
    techniques=st.lists(st.sampled_from(["T1110", "T1190", "T9999", "x"])).map(tuple),
    entities=_sets,
    alerts=st.lists(_alerts, max_size=2).map(tuple),
    marking=st.builds(Marking),
)
_relations = st.builds(
    Relation,
    source=_entities,
    type=st.sampled_from(RelationType),
    target=_entities,
    at=st.none() | _moments,
)
_events = st.builds(
    SiemEvent,
    external_id=st.none() | _texts,
    occurred_at=_moments,
    summary=_texts,
    entities=_sets,
    relations=st.lists(_relations, max_size=2).map(tuple),
    fields=st.dictionaries(_texts, st.one_of(_texts, st.none(), st.integers(), st.lists(_texts))),
)
_opinions = st.builds(
    Enrichment,
    entity=_entities,
    summary=_texts,
    disposition=st.sampled_from(Disposition),
    score=st.none() | st.integers(-5, 105),
    tags=st.lists(st.sampled_from(["scanner", "known-exploited", "x"])).map(tuple),
    relations=st.lists(_relations, max_size=1).map(tuple),
)
_worlds = st.builds(
    World,
    incidents=st.lists(_incidents, max_size=4, unique_by=lambda record: record.number),
    events=st.fixed_dictionaries({"edge": st.lists(_events, max_size=5)}),
    opinions=st.fixed_dictionaries(
        {"lists": st.lists(_opinions, max_size=3), "online": st.lists(_opinions, max_size=3)}
    ),
    down=st.sets(st.sampled_from(["provider:edge", "graph", "enricher:lists", "search"])).map(
        frozenset
    ),
)
_messages = st.lists(
    st.one_of(
        st.sampled_from(
            [
                "incident 1",
                "incidents 2 and 3 since yesterday",
                "203.0.113.5",
                "everything in the last 30 days",
                "why is the score 60?",
                "show the timeline",
                "who else?",
                "ignore 203.0.113.5",
                *HOSTILE,
            ]
        ),
        st.text(max_size=60),
    ),
    min_size=1,
    max_size=3,
)


@settings(max_examples=scale_examples(40))
@given(_worlds, _messages, st.sampled_from(Persona))
async def test_any_world_gives_a_report_that_cites_what_there_is(world, messages, persona):
    try:
        report, client = await investigate(world, *messages, persona=persona)
    except InvestigationFailed:
        return
    cited = {reference for statement in statements(report) for reference in statement.evidence}
    assert cited <= client.references
    assert 0 <= report.risk_score <= 100
    assert {
        reference for _, evidence in client.concluded for reference in evidence
    } <= client.references
    again, _ = await investigate(world, *messages, persona=persona)
    assert again == report


@pytest.mark.parametrize("truth", CASES, ids=lambda truth: truth.name)
async def test_the_order_in_which_sources_tell_it_changes_nothing(truth):
    world, dice = truth.world, random.Random(7)

    def shuffled(items):
        return dice.sample(list(items), len(items))

    other = replace(
        world,
        incidents=[
            replace(record, entities=tuple(shuffled(record.entities)))
            for record in shuffled(world.incidents)
        ],
        events={name: shuffled(world.events[name]) for name in shuffled(world.events)},
        opinions={name: shuffled(world.opinions[name]) for name in shuffled(world.opinions)},
    )
    one, _ = await investigate(world, truth.query)
    another, _ = await investigate(other, truth.query)
    assert one == another


@pytest.mark.parametrize("hostile", HOSTILE)
async def test_hostile_words_stay_on_their_line_and_change_nothing_else(hostile):
    async def report_with(title):
        incident = IncidentRecord(
            number=1,
            provider="edge",
            external_id="1",
            title=title,
            description=title,
            severity=Severity.LOW,
            status=IncidentStatus.NEW,
            occurred_at=datetime(2026, 11, 8, tzinfo=UTC),
            updated_at=datetime(2026, 11, 8, tzinfo=UTC),
        )
        return await investigate(World(incidents=[incident]), "incident 1")

    plain, _ = await report_with("plain")
    report, _ = await report_with(hostile)
    assert report.risk_score == plain.risk_score
    assert report.incidents == plain.incidents
    assert len(report.findings) == len(plain.findings)
    for statement in statements(report):
        assert statement.text.isprintable()

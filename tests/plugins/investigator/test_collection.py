"""Collection of evidence: questions, limits and gaps."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from investigator_world import (
    NOW,
    World,
    ago,
    domain,
    event,
    host,
    incident,
    investigate,
    ip,
    says,
    user,
)

from tocsin import (
    Confidence,
    Disposition,
    Edge,
    Enrichment,
    FindEvents,
    FindNeighbors,
    GetEnrichments,
    InvestigationFailed,
    ListIncidents,
    Marking,
    Match,
    Node,
    Pap,
    Persona,
    Phase,
    RelationType,
    SearchHistory,
    Severity,
    Tlp,
    Window,
)

A, B, C, D = (ip(f"203.0.113.{number}") for number in (1, 2, 3, 4))
CHAIN = [
    Edge(
        source=Node.of(one),
        type=RelationType.CONNECTED_TO,
        target=Node.of(other),
        first_seen=ago(days=1),
        last_seen=ago(days=1),
        count=1,
        known_from=("incident:1",),
    )
    for one, other in ((A, B), (B, C), (C, D))
]


async def test_the_phases_follow_one_another():
    _, client = await investigate(World(), "203.0.113.1")
    assert client.phases == list(Phase)


async def test_an_incident_that_does_not_exist_fails_by_its_name():
    with pytest.raises(InvestigationFailed, match="incident 99 does not exist"):
        await investigate(World(incidents=[incident(1)]), "incidents 1 and 99")


async def test_all_providers_away_and_no_incident_fails():
    world = World(events={"edge": (), "core": ()}, down=frozenset({"provider:edge"}))
    report, _ = await investigate(world, "203.0.113.1")
    assert says(report.gaps, "Provider edge was unavailable")
    world = World(events={"edge": ()}, down=frozenset({"provider:edge"}))
    with pytest.raises(InvestigationFailed, match="edge: it is away"):
        await investigate(world, "203.0.113.1")


async def test_providers_that_are_left_out_count_as_away():
    world = World(events={}, absent={"edge": "no password"})
    with pytest.raises(InvestigationFailed, match="edge: no password"):
        await investigate(world, "203.0.113.1")


async def test_all_providers_away_fails_also_where_an_incident_is_at_hand():
    world = World(incidents=[incident(1, entities=(A,))], down=frozenset({"provider:edge"}))
    with pytest.raises(InvestigationFailed, match="edge: it is away"):
        await investigate(world, "incident 1")


async def test_a_provider_away_is_a_gap_where_another_answers():
    world = World(
        incidents=[incident(1, entities=(A,))],
        events={"edge": (), "core": ()},
        down=frozenset({"provider:edge"}),
    )
    report, _ = await investigate(world, "incident 1")
    assert says(report.gaps, "Provider edge was unavailable: it is away")
    assert report.confidence is Confidence.LOW
    assert any("Ask again when provider edge" in action.text for action in report.actions)


SURE = World(
    incidents=[
        incident(1, "ssh brute force", severity=Severity.HIGH, entities=(A,)),
        incident(2, "logon", provider="core", entities=(A,)),
    ],
    events={"edge": (), "core": ()},
    opinions={"lists": [Enrichment(entity=A, summary="bad", disposition=Disposition.MALICIOUS)]},
)


@pytest.mark.parametrize(
    ("down", "confidence"),
    [
        ((), Confidence.HIGH),
        (("graph",), Confidence.MEDIUM),
        (("provider:core",), Confidence.MEDIUM),
        (("provider:edge",), Confidence.LOW),
        (("provider:core", "graph"), Confidence.LOW),
    ],
)
async def test_who_does_not_answer_lowers_the_confidence(down, confidence):
    report, _ = await investigate(replace(SURE, down=frozenset(down)), "incident 1")
    assert report.confidence is confidence


async def test_who_answers_once_and_then_no_more_lowers_the_confidence_too():
    report, _ = await investigate(replace(SURE, silent_from={"graph": 4}), "incident 1")
    assert says(report.gaps, "The graph was unavailable")
    assert report.confidence is Confidence.MEDIUM


async def test_an_unclear_query_is_answered_honestly():
    report, client = await investigate(World(incidents=[incident(1)]), "hello?")
    assert [statement.text for statement in report.summary] == [
        "The question does not say what to investigate."
    ]
    assert report.findings == report.contributions == ()
    assert not client.of_kind(ListIncidents)


async def test_words_are_looked_for_in_the_history():
    world = World(
        incidents=[incident(1, "strange vpn logons"), incident(2, "vpn is full")],
        sessions=[Match(kind="session", id="ses_7", title="strange vpn logons of bob", score=1)],
    )
    report, _ = await investigate(world, "strange vpn logons")
    assert report.incidents == (1,)
    assert says(report.summary, "ses_7")


async def test_where_not_all_words_fit_those_that_fit_most_count():
    world = World(incidents=[incident(1, "vpn is full")])
    report, client = await investigate(world, "peculiar vpn behaviour")
    assert report.incidents == (1,)
    assert len(client.of_kind(SearchHistory)) == 4


async def test_a_time_alone_asks_for_all_incidents_in_it():
    world = World(incidents=[incident(1), incident(2, occurred_at=ago(days=5))])
    report, _ = await investigate(world, "everything since yesterday")
    assert report.incidents == (1,)
    report, _ = await investigate(world, "critical incidents in the last 30 days")
    assert report.incidents == ()
    assert says(report.summary, "Nothing in the stored data matches")


async def test_a_named_provider_is_the_only_one_asked():
    world = World(
        incidents=[incident(1, entities=(A,)), incident(2, provider="core", entities=(A,))],
        events={"edge": (), "core": ()},
    )
    for given in ({"provider": "core"}, {}):
        _, client = await investigate(world, "203.0.113.1 on core", **given)
        assert {question.provider for question in client.of_kind(FindEvents)} == {"core"}


async def test_without_a_time_an_incident_gives_its_own():
    old = datetime(2026, 1, 5, tzinfo=UTC)
    report, _ = await investigate(World(incidents=[incident(1, occurred_at=old)]), "#1")
    assert report.window == Window(old - timedelta(days=1), old + timedelta(days=1))


@pytest.mark.parametrize("year", [1, 1970, 9999])
async def test_an_impossible_time_of_an_incident_does_no_harm(year):
    moment = datetime(year, 1, 1, tzinfo=UTC)
    report, _ = await investigate(World(incidents=[incident(1, occurred_at=moment)]), "#1")
    assert report.window.start < report.window.end <= NOW


async def test_entities_are_followed_as_deep_as_the_persona_goes():
    for persona, depth in ((Persona.ANALYST, 1), (Persona.THREAT_HUNTER, 3)):
        report, _ = await investigate(World(edges=CHAIN), "203.0.113.1", persona=persona)
        assert max(entity.depth for entity in report.entities) == depth
    for messages in (("203.0.113.1", "go deeper"), ("hunt for 203.0.113.1",)):
        report, _ = await investigate(World(edges=CHAIN), *messages)
        assert [entity.depth for entity in report.entities] == [0, 1, 2]


async def test_what_lies_beyond_the_bounds_is_said():
    report, _ = await investigate(World(edges=CHAIN), "203.0.113.1")
    assert says(report.gaps, "1 related entity was not examined")


@pytest.mark.parametrize(
    ("query", "provider"),
    [("user bob", "elastic"), ("user bob between 2026-11-01 and 2026-11-03", None)],
)
async def test_incidents_that_are_meant_are_found_among_many_others(query, provider):
    bob = user("bob")
    others = [
        incident(number, provider="splunk", entities=(bob,), occurred_at=ago(minutes=number))
        for number in range(2, 202)
    ]
    at = ago(hours=5) if provider else datetime(2026, 11, 2, tzinfo=UTC)
    meant = incident(1, provider="elastic", entities=(bob,), occurred_at=at)
    report, _ = await investigate(World(incidents=[meant, *others]), query, provider=provider)
    assert report.incidents == (1,)


async def test_bounds_hold():
    entities = tuple(host(f"pc-{number}") for number in range(80))
    world = World(incidents=[incident(1, entities=entities)], events={"a": (), "b": ()})
    bounds = {"bounds": {"analyst": {"entities": 30, "provider_calls": 7}}}
    report, client = await investigate(world, "#1", settings=bounds)
    assert len(report.entities) == 30
    assert len(client.of_kind(FindEvents)) == 7
    assert says(report.gaps, "53 event searches were skipped, because the limit is 7")


async def test_when_time_is_up_no_more_is_asked():
    entities = tuple(host(f"pc-{number}") for number in range(60))
    world = World(incidents=[incident(1, entities=entities)])
    report, client = await investigate(world, "#1", seconds=10)
    assert client.elapsed < timedelta(seconds=120 + 16 * 10)
    assert says(report.gaps, "No further queries were sent after the time limit of 120 seconds")


async def test_incidents_beyond_the_bound_are_said():
    world = World(incidents=[incident(number) for number in range(1, 80)])
    report, _ = await investigate(world, "all incidents in the last 7 days")
    assert len(report.incidents) == 50
    assert says(report.gaps, "the limit is 50 incidents")


async def test_what_is_well_known_or_everywhere_is_not_followed():
    office, resolver = ip("10.0.0.1"), ip("9.9.9.9")
    world = World(
        incidents=[incident(1, entities=(office, resolver, A))],
        well_known=frozenset({resolver}),
        older={office: (50, ago(days=300))},
    )
    _, client = await investigate(world, "#1")
    assert {question.entity for question in client.of_kind(FindNeighbors)} == {A}
    _, client = await investigate(world, "10.0.0.1")
    assert {question.entity for question in client.of_kind(FindEvents)} >= {office}


async def test_bad_entities_are_asked_about_first():
    world = World(
        incidents=[incident(1, entities=(A, B, C))],
        opinions={
            "lists": [Enrichment(entity=C, summary="bad", disposition=Disposition.MALICIOUS)]
        },
    )
    bounds = {"bounds": {"analyst": {"provider_calls": 1}}}
    _, client = await investigate(world, "#1", settings=bounds)
    assert [question.entity for question in client.of_kind(FindEvents)] == [C]


async def test_each_entity_goes_out_with_its_own_strictest_marking():
    secret = Marking(Tlp.RED, Pap.RED)
    clear = Marking(Tlp.CLEAR, Pap.CLEAR)
    world = World(
        incidents=[
            incident(1, entities=(A, B), marking=clear),
            incident(2, entities=(B,), marking=secret, occurred_at=ago(days=400)),
        ],
        opinions={"online": ()},
    )
    _, client = await investigate(world, "#1 and 203.0.113.3")
    sent = {
        entity: question.marking
        for question in client.of_kind(GetEnrichments)
        for entity in question.entities
    }
    assert sent == {A: clear, B: secret, C: Marking()}


async def test_what_was_found_through_a_marked_entity_is_marked_alike():
    secret = Marking(Tlp.RED, Pap.RED)
    world = World(
        incidents=[incident(1, entities=(A,), marking=secret)],
        events={"edge": [event("seen", ago(days=1), A, B)]},
        opinions={"online": ()},
    )
    _, client = await investigate(world, "#1")
    markings = {question.marking for question in client.of_kind(GetEnrichments)}
    assert markings == {secret}


async def test_online_enrichers_hear_nothing_of_what_is_ours():
    ours = (ip("10.0.0.5"), host("pc-1"))
    world = World(incidents=[incident(1, entities=(A, *ours))], opinions={"online": (), "own": ()})
    _, client = await investigate(world, "#1")
    asked = {question.enricher: question.entities for question in client.of_kind(GetEnrichments)}
    assert asked["online"] == (A,)
    assert set(asked["own"]) == {A, *ours}


async def test_an_event_that_two_entities_lead_to_is_told_once():
    seen = event("Accepted password", ago(hours=1), A, user("root"))
    world = World(incidents=[incident(1, entities=(A, user("root")))], events={"edge": [seen]})
    report, _ = await investigate(world, "#1")
    lines = [line for line in report.timeline if "Accepted" in line.statement.text]
    assert len(lines) == 1


async def test_answers_that_are_cut_are_gaps():
    many = [event("seen", NOW - timedelta(seconds=number + 1), A) for number in range(30)]
    world = World(events={"edge": many})
    report, _ = await investigate(world, "203.0.113.1", settings={"events_per_question": 10})
    assert says(report.gaps, "Provider edge has more results for")


async def test_a_silent_graph_or_enricher_is_a_gap():
    world = World(
        incidents=[incident(1, entities=(A, domain("a.example")))],
        opinions={"lists": ()},
        down=frozenset({"graph", "enricher:lists"}),
    )
    report, _ = await investigate(world, "#1")
    assert says(report.gaps, "The graph was unavailable")
    assert says(report.gaps, "Enricher lists was unavailable")
    assert report.incidents == (1,)


async def test_ignored_incidents_and_entities_have_no_part():
    world = World(
        incidents=[
            incident(1, entities=(A, B)),
            incident(2, severity=Severity.CRITICAL, entities=(A,)),
        ]
    )
    report, _ = await investigate(world, "#1", "ignore incident 2; ignore 203.0.113.2")
    assert report.incidents == (1,)
    assert B not in {entity.entity for entity in report.entities}


async def test_a_provider_that_stays_away_is_not_asked_for_ever():
    entities = tuple(host(f"pc-{number}") for number in range(15))
    world = World(
        incidents=[incident(1, entities=entities)],
        events={"edge": (), "core": ()},
        down=frozenset({"provider:edge"}),
    )
    _, client = await investigate(world, "#1")
    asked = [question.provider for question in client.of_kind(FindEvents)]
    assert asked.count("edge") < 5
    assert asked.count("core") == 15


async def test_what_a_provider_tells_goes_out_as_that_provider_is_marked():
    secret = Marking(Tlp.RED, Pap.RED)
    told = [event("a flow", ago(hours=2), A, B)]
    world = World(events={"edge": told}, markings={"edge": secret}, opinions={"online-one": []})
    _, client = await investigate(world, "203.0.113.1")
    of_b = [
        question.marking for question in client.of_kind(GetEnrichments) if B in question.entities
    ]
    assert of_b == [secret]


@pytest.mark.parametrize(("behind", "is_said"), [(timedelta(hours=2), True), (timedelta(), False)])
async def test_what_is_not_synced_yet_is_a_gap(behind, is_said):
    report, _ = await investigate(World(read_until={"edge": NOW - behind}), "203.0.113.1")
    assert (
        any("has read incidents from provider edge only up to" in gap.text for gap in report.gaps)
        == is_said
    )


async def test_words_that_fit_nothing_are_not_replaced_by_other_incidents():
    world = World(incidents=[incident(1), incident(2)])
    for query in ("blah fnord", "fnord incidents of the last 7 days", "critical fnord alerts"):
        report, client = await investigate(world, query)
        assert report.incidents == ()
        assert not client.of_kind(ListIncidents)
        assert says(report.summary, "Nothing in the stored data matches the word")
        assert says(report.summary, "“fnord”.")


@pytest.mark.parametrize(
    "query", ["what happened today?", "incidents from edge", "everything of the last 2 days"]
)
async def test_what_is_asked_in_general_is_still_looked_at(query):
    report, _ = await investigate(World(incidents=[incident(1, occurred_at=ago(hours=2))]), query)
    assert report.incidents == (1,)


async def test_a_provider_that_was_understood_is_no_word():
    _, client = await investigate(World(incidents=[incident(1)]), "strange logons from edge")
    assert next(question.text for question in client.of_kind(SearchHistory)) == "strange logons"


async def test_a_range_is_examined_as_far_as_the_bound_goes_and_the_rest_is_said():
    world = World(incidents=[incident(number) for number in range(1, 70) if number != 3])
    report, _ = await investigate(world, "incidents 1-60")
    assert report.incidents == tuple(number for number in range(1, 51) if number != 3)
    assert says(report.gaps, "10 more of the specified incidents (51 to 60) were not examined")
    assert says(report.gaps, "Incident 3 does not exist")


async def test_a_range_in_which_there_is_nothing_fails():
    with pytest.raises(InvestigationFailed, match="do not exist"):
        await investigate(World(incidents=[incident(1)]), "incidents 5 to 9")


async def test_a_number_that_failed_is_dropped_by_the_next_message():
    world = World(incidents=[incident(1)])
    report, _ = await investigate(world, "incident 1", "incident 99999", "go deeper")
    assert report.incidents == (1,)
    assert says(report.gaps, "Incident 99999 does not exist")
    with pytest.raises(InvestigationFailed, match="99999"):
        await investigate(world, "incident 1", "incident 99999", "look at incident 99999")


async def test_a_name_that_is_unknown_is_given_the_spelling_that_is_known():
    record = incident(1, "logon of alice", entities=(user("CORP\\alice"),))
    report, _ = await investigate(World(incidents=[record]), "user alice")
    assert says(report.gaps, "The user alice is unknown. Similar names: the user CORP")

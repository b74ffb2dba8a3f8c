"""Correlation rules."""

from dataclasses import replace
from datetime import timedelta

import pytest
from investigator_cases import ATTACKER, CASES, ROOT, SERVER, attempts, opinion, relation
from investigator_world import (
    World,
    ago,
    domain,
    event,
    host,
    incident,
    investigate,
    ip,
    kinds,
    says,
    user,
)

from tocsin import Disposition, IncidentStatus, RelationType, Severity
from tocsin_plugins.investigator.correlation import RULES

OFFICE = ip("10.0.0.1")
DAYS = timedelta(days=10)


def found(report, kind):
    return [finding for finding in report.findings if finding.kind == kind]


def test_every_rule_finds_something_in_a_written_case_or_below():
    assert {truth.finding for truth in CASES} <= {None, *RULES}


@pytest.mark.parametrize(("failures", "finds"), [(2, False), (3, True)])
async def test_a_success_counts_after_three_failures(failures, finds):
    records = attempts(failures) + attempts(1, "Accepted password for root", 50)
    report, _ = await investigate(World(events={"edge": records}), "203.0.113.5")
    assert bool(found(report, "success-after-failures")) is finds


async def test_a_success_long_after_the_failures_is_another_matter():
    records = attempts(9, minutes=200) + attempts(1, "Accepted password for root", 50)
    report, _ = await investigate(World(events={"edge": records}), "203.0.113.5")
    assert not found(report, "success-after-failures")


async def test_a_success_after_failures_is_told_once_with_all_it_concerns():
    records = attempts(9) + attempts(1, "Accepted password for root", 50)
    report, _ = await investigate(World(events={"edge": records}), "203.0.113.5")
    [only] = found(report, "success-after-failures")
    assert set(only.entities) == {ATTACKER, ROOT, SERVER}
    assert "9 failed logons" in only.title


async def test_what_an_incident_says_is_not_counted_as_logons():
    record = incident(7, "Brute force", occurred_at=ago(minutes=70), entities=(ATTACKER,))
    records = attempts(1, "Accepted password for root", 50)
    report, _ = await investigate(World(incidents=[record], events={"edge": records}), "#7")
    [only] = found(report, "success-after-failures")
    assert "succeeded after incident 7" in only.title


@pytest.mark.parametrize(
    ("summary", "fields", "finds"),
    [
        ("logon", {"event_id": "4624"}, True),
        ("logon", {"event_id": 4624}, True),
        ("logon", {"event_id": "4625"}, False),
        ("ssh authentication", {"outcome": "success"}, True),
        ("logon failed, and not accepted", {}, False),
        ("session opened for user root", {}, True),
    ],
)
async def test_the_outcome_of_a_logon_is_read(summary, fields, finds):
    last = event(summary, ago(minutes=50), ATTACKER, fields=fields)
    report, _ = await investigate(World(events={"edge": [*attempts(5), last]}), "203.0.113.5")
    assert bool(found(report, "success-after-failures")) is finds


def stages(*techniques, shared=ATTACKER, step=1):
    return [
        incident(
            number,
            f"stage {number}",
            occurred_at=ago(hours=10 - number * step),
            techniques=(technique,),
            entities=(shared,),
            sources=(shared,),
            targets=(),
        )
        for number, technique in enumerate(techniques, 1)
    ]


async def test_tactics_in_their_order_are_a_sequence():
    world = World(incidents=stages("T1595", "T1190", "T1059", "T1486"))
    report, _ = await investigate(world, "203.0.113.5")
    [only] = found(report, "attack-sequence")
    assert only.title.endswith("reconnaissance, initial-access, execution, impact")
    assert [statement.evidence for statement in only.statements] == [
        ("incident:1",),
        ("incident:2",),
        ("incident:3",),
        ("incident:4",),
    ]


async def test_tactics_in_another_order_or_at_once_are_none():
    world = World(incidents=stages("T1486", "T1190", "T1595"))
    report, _ = await investigate(world, "203.0.113.5")
    assert not found(report, "attack-sequence")
    world = World(incidents=stages("T1595", "T1190", step=0))
    report, _ = await investigate(world, "203.0.113.5")
    assert not found(report, "attack-sequence")


async def test_attackers_with_a_common_target_are_no_sequence():
    """The chain led over the attacked server, and so blamed it."""
    web, others = ip("192.0.2.10"), [ip(f"198.51.100.{number}") for number in (1, 2, 3)]
    steps = [
        replace(step, entities=(other, web), sources=(other,), targets=(web,))
        for step, other in zip(stages("T1595", "T1190", "T1059"), others, strict=True)
    ]
    report, _ = await investigate(World(incidents=steps), "incidents 1, 2 and 3")
    assert not found(report, "attack-sequence")
    against = [
        action.text for action in report.actions if action.text.startswith(("Block", "Isol"))
    ]
    assert not any(web.value in text for text in against)


async def test_an_attacked_server_is_not_blocked_for_an_alert_on_its_reply():
    web, other = ip("192.0.2.10"), ip("198.51.100.1")
    attack, reply = (
        incident(number, "exploit", entities=(web, other), sources=(source,), targets=(target,))
        for number, source, target in ((1, other, web), (2, web, ip("198.51.100.2")))
    )
    report, _ = await investigate(World([attack, reply]), "incidents 1 and 2")
    blocked = [action.text for action in report.actions if action.text.startswith("Block")]
    assert blocked == ["Block the address 198.51.100.1."]


async def test_attackers_with_nothing_in_common_are_not_added_up():
    web, bad = host("web-1"), [ip(f"198.51.100.{number}") for number in (1, 2)]
    opinions = {"lists": [opinion(bad[0], Disposition.MALICIOUS)]}
    records = [
        incident(1, "port scan", entities=(bad[0], web)),
        incident(2, "exploit", severity=Severity.CRITICAL, entities=(bad[1], web)),
    ]
    world = World(incidents=records, opinions=opinions)
    alone = [(await investigate(world, query))[0] for query in ("#1", "#2")]
    report, _ = await investigate(world, "incidents 1 and 2")
    assert report.risk_score <= max(one.risk_score for one in alone)
    assert says(report.summary, "based on the worst of 2 attackers")


async def test_remote_administration_is_no_callback():
    tool = incident(
        1,
        "Remote administration tool",
        severity=Severity.HIGH,
        techniques=("T1219",),
        entities=(host("pc-1"),),
        sources=(host("pc-1"),),
        targets=(),
    )
    scan = incident(2, "exploit", severity=Severity.CRITICAL, entities=(ATTACKER,))
    opinions = {"lists": [opinion(ATTACKER, Disposition.MALICIOUS)]}
    report, _ = await investigate(World([tool, scan], opinions=opinions), "incidents 1 and 2")
    assert report.risk_score >= 40
    assert not any("Isolate" in action.text for action in report.actions)


async def test_the_words_of_events_stand_for_tactics():
    web = host("web-1")
    called = (relation(web, RelationType.CONNECTED_TO, ATTACKER),)
    records = [
        event("port scan", ago(hours=3), ATTACKER, web),
        event("sql injection", ago(hours=2), ATTACKER, web),
        event("beacon to a known server", ago(hours=1), ATTACKER, web, relations=called),
    ]
    report, _ = await investigate(World(events={"edge": records}), "203.0.113.5")
    [only] = found(report, "attack-sequence")
    assert only.title.endswith("reconnaissance, initial-access, command-and-control")


async def test_steps_without_anything_in_common_are_no_sequence():
    records = [
        incident(1, occurred_at=ago(hours=3), techniques=("T1595",), entities=(ip("192.0.2.1"),)),
        incident(2, occurred_at=ago(hours=2), techniques=("T1190",), entities=(ip("192.0.2.2"),)),
    ]
    report, _ = await investigate(World(incidents=records), "incidents 1 and 2")
    assert not found(report, "attack-sequence")


async def test_steps_too_far_apart_are_no_sequence():
    steps = stages("T1595", "T1190", "T1059", step=30)
    world = World(incidents=[replace(step, occurred_at=step.occurred_at - DAYS) for step in steps])
    for hours, finds in ((24, False), (31, True)):
        given = {"settings": {"between_steps": f"{hours}h"}}
        report, _ = await investigate(world, "203.0.113.5 last 30 days", **given)
        assert bool(found(report, "attack-sequence")) is finds


async def test_a_host_of_ours_connects_steps_only_where_it_was_taken_over():
    pc = host("pc-1")
    world = World(incidents=stages("T1595", "T1190", "T1059", shared=pc))
    report, _ = await investigate(world, "host pc-1")
    assert not found(report, "attack-sequence")
    logons = [
        event(words, ago(minutes=40 - number), ATTACKER, pc)
        for number, words in enumerate(["Failed password"] * 5 + ["Accepted password"])
    ]
    report, _ = await investigate(replace(world, events={"edge": logons}), "host pc-1")
    assert found(report, "attack-sequence")


async def test_incidents_that_have_a_resolver_in_common_are_no_attack():
    name = "a resolver of ours in many incidents that have nothing to do with one another"
    [truth] = [case for case in CASES if case.name == name]
    report, _ = await investigate(truth.world, truth.query)
    assert "attack-sequence" not in kinds(report)


async def test_a_technique_counts_for_its_first_tactic_alone():
    world = World(incidents=stages("T1078", "T1078", "T1078", "T1078"))
    report, _ = await investigate(world, "203.0.113.5")
    assert not found(report, "attack-sequence")


async def test_a_closed_incident_is_a_step_only_where_it_is_named():
    first, second = stages("T1595", "T1190")
    world = World(incidents=[replace(first, status=IncidentStatus.CLOSED), second])
    for query, finds in (("203.0.113.5", False), ("incidents 1 and 2", True)):
        report, _ = await investigate(world, query)
        assert bool(found(report, "attack-sequence")) is finds


async def test_what_is_new_may_be_in_many_incidents():
    records = [incident(number, entities=(ATTACKER,)) for number in range(1, 6)]
    report, _ = await investigate(World(incidents=records), "#1")
    assert "first-seen" in kinds(report)


async def test_what_is_everywhere_makes_no_sequence():
    world = World(
        incidents=stages("T1595", "T1190", "T1059", shared=OFFICE),
        older={OFFICE: (50, ago(days=300))},
    )
    report, _ = await investigate(world, "10.0.0.1")
    assert not found(report, "attack-sequence")


async def test_incidents_share_entities_but_not_what_is_everywhere():
    records = [incident(number, entities=(ATTACKER, ROOT, OFFICE)) for number in (1, 2)]
    world = World(incidents=records, older={OFFICE: (50, ago(days=300))})
    report, _ = await investigate(world, "#1")
    [only] = found(report, "shared-entity")
    assert only.entities == (ATTACKER, ROOT)
    assert only.incidents == (1, 2)


@pytest.mark.parametrize(("hosts", "finds"), [(2, False), (3, True)])
async def test_lateral_movement_takes_three_hosts(hosts, finds):
    alice = user("alice")
    records = [
        event(
            "logon",
            ago(hours=number + 1),
            alice,
            relations=(relation(alice, RelationType.LOGGED_ON_TO, host(f"server-{number}")),),
        )
        for number in range(hosts)
    ]
    report, _ = await investigate(World(events={"edge": records}), "user alice")
    assert bool(found(report, "lateral-movement")) is finds


async def test_a_callback_takes_something_of_ours_and_something_malicious():
    evil, pc = domain("evil.example.com"), host("pc-1")
    contact = event(
        "lookup",
        ago(hours=1),
        evil,
        pc,
        relations=(relation(pc, RelationType.CONNECTED_TO, evil),),
    )
    for disposition, finds in ((Disposition.MALICIOUS, True), (Disposition.SUSPICIOUS, False)):
        world = World(events={"edge": [contact]}, opinions={"lists": [opinion(evil, disposition)]})
        report, _ = await investigate(world, "evil.example.com")
        assert bool(found(report, "callback")) is finds


async def test_sources_that_disagree_are_said_and_weigh_less():
    said = {"a": [opinion(ATTACKER, Disposition.MALICIOUS)]}
    alone, _ = await investigate(World(opinions=said), "203.0.113.5")
    said["b"] = [opinion(ATTACKER, Disposition.BENIGN)]
    report, _ = await investigate(World(opinions=said), "203.0.113.5")
    assert found(report, "disagreement")
    assert not found(report, "agreement")
    assert report.risk_score < alone.risk_score


async def test_a_low_score_of_a_source_counts_for_less():
    scores = []
    for score in (0, 50, 100, None):
        said = {"a": [opinion(ATTACKER, Disposition.MALICIOUS, score=score)]}
        report, _ = await investigate(World(opinions=said), "203.0.113.5")
        scores.append(report.risk_score)
    assert scores[0] < scores[1] < scores[2] == scores[3]


async def test_what_is_new_and_what_is_rare_are_told_apart():
    record = incident(1, occurred_at=ago(days=1), entities=(ATTACKER,))
    report, _ = await investigate(World(incidents=[record]), "#1")
    assert "first-seen" in kinds(report)
    world = World(incidents=[record], older={ATTACKER: (1, ago(days=90))})
    report, _ = await investigate(world, "#1")
    assert "rare-entity" in kinds(report)
    assert "first-seen" not in kinds(report)
    world = World(incidents=[record], older={ATTACKER: (9, ago(days=90))})
    report, _ = await investigate(world, "#1")
    assert not {"rare-entity", "first-seen"} & kinds(report)


@pytest.mark.parametrize(("seconds", "finds"), [(5, True), (60, False)])
async def test_a_burst_is_much_at_once(seconds, finds):
    records = [
        event("denied", ago(hours=2) + timedelta(seconds=number * seconds), ATTACKER)
        for number in range(12)
    ]
    report, _ = await investigate(World(events={"edge": records}), "203.0.113.5")
    assert bool(found(report, "burst")) is finds


@pytest.mark.parametrize(("days", "finds"), [(2, False), (3, True)])
async def test_what_comes_back_does_so_on_three_days(days, finds):
    records = [
        incident(number + 1, occurred_at=ago(days=number + 1), entities=(ATTACKER,))
        for number in range(days)
    ]
    report, _ = await investigate(World(incidents=records), "203.0.113.5")
    assert bool(found(report, "recurrence")) is finds


async def test_an_explanation_of_one_of_many_counts_in_part():
    others = [incident(number, entities=(ip("192.0.2.1"),)) for number in (1, 2, 3)]
    explained = incident(4, entities=(ATTACKER,))
    world = World(
        incidents=[*others, explained],
        opinions={"lists": [opinion(ATTACKER, Disposition.BENIGN)]},
    )
    report, _ = await investigate(world, "incidents 1, 2, 3 and 4")
    [part] = [
        contribution
        for contribution in report.contributions
        if contribution.name == "benign-explanation"
    ]
    assert part.points == -10


async def test_nothing_from_outside_is_said_only_of_what_is_ours():
    report, _ = await investigate(World(incidents=[incident(1, entities=(OFFICE,))]), "#1")
    assert "internal-only" in kinds(report)
    world = World(incidents=[incident(1, entities=(OFFICE, ATTACKER))])
    report, _ = await investigate(world, "#1")
    assert "internal-only" not in kinds(report)


@pytest.mark.parametrize("involved", [(ip("8.8.8.8"), OFFICE), (user("alice"), host("pc-1"))])
async def test_a_well_known_address_or_none_at_all_is_not_from_inside(involved):
    world = World(incidents=[incident(1, entities=involved)], well_known=frozenset({ip("8.8.8.8")}))
    report, _ = await investigate(world, "#1")
    assert "internal-only" not in kinds(report)


async def test_one_incident_without_an_address_leaves_it_open_where_all_came_from():
    records = [incident(1, entities=(OFFICE,)), incident(2, entities=(user("alice"),))]
    report, _ = await investigate(World(incidents=records), "incidents 1 and 2")
    assert "internal-only" not in kinds(report)


async def test_many_findings_of_a_kind_are_cut_and_said():
    addresses = [ip(f"198.51.100.{number}") for number in range(20)]
    world = World(
        incidents=[incident(1, entities=tuple(addresses))],
        opinions={"lists": [opinion(address, Disposition.MALICIOUS) for address in addresses]},
    )
    report, _ = await investigate(world, "#1")
    assert len(found(report, "reputation")) == 10
    assert any("10 more findings of the kind reputation" in gap.text for gap in report.gaps)

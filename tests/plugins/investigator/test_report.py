"""Reports: summary, gaps and recommended actions."""

from dataclasses import replace
from datetime import timedelta

import pytest
from investigator_cases import ATTACKER, CASES, ROOT, SERVER, attempts, opinion
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

from tocsin import Alert, Disposition, Enrichment, Entity, EntityKind, FindEvents, Match, Severity

BRUTE_FORCE = incident(
    1,
    "crowdsecurity/ssh-bf",
    occurred_at=ago(minutes=61),
    techniques=("T1110",),
    entities=(ATTACKER, ROOT, user("admin"), SERVER),
    alert_count=1,
)


def itself(summary, record=BRUTE_FORCE, **given):
    """An event that is an incident itself."""
    told = event(summary, record.occurred_at, *record.entities, **given)
    return replace(told, external_id=record.external_id)


def advised(report):
    return [action.text for action in report.actions]


def case_of(name):
    return next(truth for truth in CASES if truth.name == name)


async def test_a_summary_begins_with_what_happened():
    report, _ = await investigate(World(incidents=[BRUTE_FORCE]), "#1")
    happened, techniques, judgement, *_ = [statement.text for statement in report.summary]
    assert happened == (
        "Incident 1, “crowdsecurity/ssh-bf” (Medium, New, 1 alert from provider edge), began on "
        "2026-11-08 10:59:00 UTC and indicates a brute-force attack. The source is the address "
        "203.0.113.5, and the target is the host web-1. The users admin and root are also involved."
    )
    assert techniques == "Techniques: Brute Force (T1110, credential-access)."
    assert judgement.startswith(
        "The verdict is suspicious with medium confidence, and the risk score is 24"
    )
    assert (
        "Incident 1 has a severity of Medium, which contributes 60% of the maximum of 35"
        in judgement
    )


async def test_of_many_incidents_the_worst_are_told_and_the_others_counted():
    records = [incident(number, f"alert {number}") for number in range(1, 7)]
    worst = replace(records[4], severity=Severity.CRITICAL)
    report, _ = await investigate(World(incidents=[*records[:4], worst]), "last 7 days")
    assert report.summary[0].text.startswith("Incident 5, “alert 5” (Critical")
    assert says(report.summary, "2 more incidents match the question")


async def test_counts_of_nothing_are_left_out():
    report, _ = await investigate(World(incidents=[incident(1)]), "#1")
    assert says(report.summary, "Tocsin examined 1 incident.")


async def test_an_incident_is_a_finding_with_its_description_and_alerts():
    alert = Alert(
        external_id="a1", title="ssh guess", severity=Severity.LOW, occurred_at=ago(minutes=60)
    )
    record = replace(BRUTE_FORCE, description="12 failures\nin 5 s", alerts=(alert,))
    report, _ = await investigate(World(incidents=[record]), "#1")
    [finding] = [finding for finding in report.findings if finding.kind == "incident"]
    assert (finding.severity, finding.techniques) == (Severity.MEDIUM, ("T1110",))
    assert says(finding.statements, "Description: “12 failures in 5 s”")
    assert says(finding.statements, "Alerts: “ssh guess”")


async def test_incidents_that_came_up_on_the_way_are_no_findings_of_their_own():
    other = incident(2, "another", severity=Severity.CRITICAL, entities=(ATTACKER,))
    report, _ = await investigate(World(incidents=[BRUTE_FORCE, other]), "#1")
    assert [finding.incidents for finding in report.findings if finding.kind == "incident"] == [
        (1,)
    ]
    assert report.incidents == (1, 2)


async def test_an_event_that_is_the_incident_itself_is_told_once_and_not_counted():
    world = World(incidents=[BRUTE_FORCE], events={"edge": [itself("failed; decided: ban")]})
    report, _ = await investigate(world, "#1")
    [line] = report.timeline
    assert "“failed; decided: ban”" in line.statement.text
    assert says(report.summary, "Tocsin examined 1 incident and 4 entities.")
    assert says(report.summary, "Provider edge reports this response: “decided: ban”")


async def test_an_event_of_another_provider_with_the_same_identifier_is_another():
    told = {"edge": (), "core": [itself("a flow")]}
    report, _ = await investigate(World(incidents=[BRUTE_FORCE], events=told), "#1")
    assert len(report.timeline) == 2


async def test_what_the_siem_let_pass_is_no_block():
    record = replace(BRUTE_FORCE, description="Suricata allowed this TCP traffic.")
    report, _ = await investigate(World(incidents=[record]), "#1")
    assert says(report.summary, "Provider edge reports that the activity was allowed: “Suricata")
    assert "Block the address 203.0.113.5." in advised(report)


async def test_what_the_siem_has_blocked_is_to_stay_so():
    banned = event("ban of 203.0.113.5 for 4h", ago(minutes=50), ATTACKER)
    world = World(incidents=[BRUTE_FORCE], events={"edge": [banned]})
    report, _ = await investigate(world, "#1")
    assert "Verify that the address 203.0.113.5 stays blocked." in advised(report)
    assert "Block the address 203.0.113.5." not in advised(report)


@pytest.mark.parametrize(
    ("events", "is_said"),
    [((), True), (attempts(3), True), (attempts(1, "Accepted password for root", 50), False)],
)
async def test_that_nobody_tells_whether_a_logon_succeeded_is_a_gap(events, is_said):
    world = World(incidents=[BRUTE_FORCE], events={"edge": events})
    report, _ = await investigate(world, "#1")
    assert says(report.gaps, "It is unknown whether a logon succeeded in incident 1") is is_said
    checks = [text for text in advised(report) if text.startswith("Check whether a logon from")]
    assert bool(checks) is is_said


@pytest.mark.parametrize(("enricher", "is_said"), [("lists", True), ("online-one", False)])
async def test_that_no_reputation_was_asked_is_a_gap(enricher, is_said):
    world = World(incidents=[BRUTE_FORCE], opinions={enricher: ()})
    report, _ = await investigate(world, "#1")
    asked = "No reputation source was queried about the address 203.0.113.5"
    assert says(report.gaps, asked) is is_said


async def test_a_provider_is_asked_only_for_the_kinds_it_has_and_others_are_a_gap():
    world = World(incidents=[BRUTE_FORCE], event_kinds={"edge": (EntityKind.IP, EntityKind.USER)})
    report, client = await investigate(world, "#1")
    assert {question.entity.kind for question in client.of_kind(FindEvents)} == {
        EntityKind.IP,
        EntityKind.USER,
    }
    assert says(report.gaps, "Provider edge cannot search for events that involve the host web-1.")


async def test_what_another_provider_can_be_asked_for_is_no_gap():
    world = World(
        incidents=[BRUTE_FORCE],
        events={"edge": (), "core": ()},
        event_kinds={"edge": (EntityKind.IP,)},
    )
    report, _ = await investigate(world, "#1")
    assert not says(report.gaps, "cannot search for events")


async def test_a_brute_force_is_followed_by_what_an_analyst_would_do():
    report, _ = await investigate(World(incidents=[BRUTE_FORCE]), "#1")
    assert advised(report) == [
        "Check whether a logon from the address 203.0.113.5 to the host web-1 has succeeded since "
        "2026-11-08 10:59:00 UTC.",
        "Block the address 203.0.113.5.",
        "Watch the users admin and root, and reset their passwords if a logon has succeeded.",
    ]
    assert all("incident:1" in action.reason.evidence for action in report.actions)


async def test_malware_is_followed_by_isolation_and_memory():
    truth = case_of("malware that calls back")
    report, _ = await investigate(truth.world, truth.query)
    about = [text for text in advised(report) if "pc-7" in text]
    assert about == ["Isolate the host pc-7 and collect its memory and logs."]


async def test_an_exploit_is_followed_by_a_patch_and_a_look_at_the_host():
    cve = Entity(EntityKind.CVE, "CVE-2021-44228")
    known = Enrichment(entity=cve, summary="exploited", tags=("known-exploited",))
    record = incident(1, "Log4j exploit", entities=(ATTACKER, cve, SERVER, domain("a.example")))
    world = World(incidents=[record], opinions={"cve": [known]})
    report, _ = await investigate(world, "#1")
    assert {
        "Find and patch systems with the vulnerability CVE-2021-44228, starting with the host "
        "web-1.",
        "Check the host web-1 for traces of an exploit, such as new processes or files.",
        "Block the address 203.0.113.5.",
    } <= {*advised(report)}


@pytest.mark.parametrize("origin", [ip("10.0.0.9"), ip("8.8.8.8")])
async def test_what_is_ours_or_well_known_is_not_to_be_blocked(origin):
    record = replace(BRUTE_FORCE, entities=(origin, ROOT))
    world = World(incidents=[record], well_known=frozenset({ip("8.8.8.8")}))
    report, _ = await investigate(world, "#1")
    assert not [text for text in advised(report) if "lock" in text]


async def test_what_is_benign_is_tuned_and_closed_and_no_more():
    truth = case_of("a known-good administrator")
    report, _ = await investigate(truth.world, truth.query)
    assert advised(report) == ["Tune the rule “Many failed logons”.", "Close incident 1."]


async def test_an_incident_of_no_known_kind_is_to_be_explained_by_someone():
    record = incident(1, "something odd", severity=Severity.HIGH, entities=(host("pc-1"),))
    report, _ = await investigate(World(incidents=[record]), "#1")
    assert advised(report) == [
        "Ask the owner of the host pc-1 whether the activity in incident 1 is expected."
    ]


async def test_what_is_known_of_an_entity_is_said_once_with_its_role():
    history = Enrichment(
        entity=ATTACKER,
        summary="Seen in one incident",
        facts={"incident_count": 1, "first_seen": None, "last_seen": None, "recent": [1]},
    )
    graph = Enrichment(entity=ATTACKER, summary="Related to one", facts={"related": []})
    world = World(
        incidents=[BRUTE_FORCE],
        events={"edge": attempts(2)},
        opinions={"history": [history], "neighbourhood": [graph]},
    )
    report, _ = await investigate(world, "#1")
    [about] = [entity for entity in report.entities if entity.entity == ATTACKER]
    assert [statement.text for statement in about.statements] == [
        "The address 203.0.113.5 appears only in incident 1 and in 2 events.",
        "The address 203.0.113.5 is a source in incident 1.",
    ]


async def test_what_the_graph_says_more_is_told():
    more = Enrichment(
        entity=ATTACKER,
        summary="Related to 2, of which 1 was in another incident",
        tags=("known-by-association",),
        facts={"related": []},
    )
    world = World(incidents=[BRUTE_FORCE], opinions={"neighbourhood": [more]})
    report, _ = await investigate(world, "#1")
    [about] = [entity for entity in report.entities if entity.entity == ATTACKER]
    assert says(about.statements, "According to the graph: Related to 2")


async def test_a_session_finds_neither_itself_nor_those_that_ask_the_same():
    titles = {"ses_1": "vpn of bob", "ses_2": "what of the vpn?", "ses_3": "vpn of alice"}
    sessions = [Match(kind="session", id=title, title=titles[title], score=1) for title in titles]
    report, _ = await investigate(World(sessions=sessions), "vpn")
    told = [statement.text for statement in report.summary if "earlier session" in statement.text]
    assert told == ["An earlier session is similar: ses_3, “vpn of alice”."]


async def test_the_timeline_merges_only_what_has_the_same_entities():
    other = ip("198.51.100.20")
    records = [
        event("Accepted password", ago(minutes=50 - number), whence, ROOT, where)
        for number, (whence, where) in enumerate(
            [(ATTACKER, SERVER), (other, host("a")), (other, host("b")), (other, host("b"))]
        )
    ]
    report, _ = await investigate(World(events={"edge": records}), "user root")
    lines = [moment.statement.text for moment in report.timeline]
    assert len(lines) == 3
    assert "203.0.113.5" in lines[0]
    assert "2 times" in lines[2]


async def test_an_address_that_logged_on_after_failures_is_to_be_blocked():
    records = attempts(9) + attempts(1, "Accepted password for root", 50)
    report, _ = await investigate(World(events={"edge": records}), "user root")
    [action] = [action for action in report.actions if action.text.startswith("Block")]
    assert action.text == "Block the address 203.0.113.5."
    assert "step:" in action.reason.evidence[0]


@pytest.mark.parametrize("summary", ["port scan", "sql injection", "ssh brute force"])
async def test_an_address_that_events_tell_an_attack_of_is_to_be_blocked(summary):
    world = World(events={"edge": [event(summary, ago(hours=1), ATTACKER, SERVER)]})
    report, _ = await investigate(world, "203.0.113.5")
    assert "Block the address 203.0.113.5." in advised(report)


async def test_that_a_severity_is_assumed_is_said():
    report, _ = await investigate(World(incidents=[incident(1, severity_assumed=True)]), "#1")
    assert says(report.summary, "(Medium, assumed, New")


async def test_what_was_found_near_is_told_apart():
    truth = case_of("a scan by our own vendor of a host that is under attack")
    report, _ = await investigate(truth.world, truth.query)
    assert says(report.summary, "Related, but outside the question")
    assert says(report.summary, "Of these incidents, 1 matches the question")


async def test_a_source_is_called_by_its_name_in_words():
    said = {"virustotal": [opinion(ATTACKER, Disposition.MALICIOUS)]}
    report, _ = await investigate(World(opinions=said), "203.0.113.5")
    assert says(report.findings[0].statements, "According to VirusTotal, the address")


async def test_an_opinion_without_a_disposition_only_tells_its_facts():
    told = Enrichment(entity=ATTACKER, summary="It is owned by Payments")
    report, _ = await investigate(World(opinions={"assets": [told]}), "Who is 203.0.113.5?")
    said = "Information from enricher assets about the address 203.0.113.5: It is owned by Payments"
    assert says(report.summary, said)


async def test_a_detection_is_not_counted_as_a_logon():
    told = [
        event("ban: ssh-bf", ago(minutes=55) + timedelta(seconds=number), ATTACKER)
        for number in range(5)
    ]
    success = attempts(1, "Accepted password for root", 50)
    report, _ = await investigate(World(events={"edge": told + success}), "203.0.113.5")
    assert "success-after-failures" not in kinds(report)

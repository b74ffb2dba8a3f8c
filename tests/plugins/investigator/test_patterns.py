"""Queries for networks, ranges, lists and wildcards, and words that nobody understands."""

from __future__ import annotations

import pytest
from investigator_world import NOW, World, ago, host, incident, investigate, ip, says, user

from tocsin import Confidence, FindEntities, FindEvents, Severity
from tocsin_plugins.investigator.interpretation import interpret_messages

WEB = ip("192.0.2.10")
SCANNER = ip("198.51.100.7")
MALWARE = incident(
    2,
    "Ransomware on a laptop",
    severity=Severity.CRITICAL,
    occurred_at=ago(hours=5),
    techniques=("T1486",),
    entities=(host("pc-7"), ip("10.0.0.7")),
)
SCAN = incident(1, "port scan", occurred_at=ago(hours=6), entities=(SCANNER, WEB))
WORLD = World(incidents=[SCAN, MALWARE])


def scope(*messages: str):
    return interpret_messages(messages, NOW)


@pytest.mark.parametrize(
    ("text", "patterns"),
    [
        ("who else has seen 198.51.100.0/24 in the last 3 days?", ["198.51.100.0/24"]),
        ("198.51.100[.]0/24", ["198.51.100.0/24"]),
        ("10.0.0.0/8, 2001:db8::/32 and 192.168.0.0/16", None),
        ("198.51.100.1-198.51.100.9", ["198.51.100.1-198.51.100.9"]),
        ("198.51.100.1 - 9", ["198.51.100.1-198.51.100.9"]),
        ("between 198.51.100.1 and 198.51.100.9", ["198.51.100.1-198.51.100.9"]),
        ("198.51.100.1 to 198.51.100.9", ["198.51.100.1-198.51.100.9"]),
        ("2001:db8::1-2001:db8::ff", ["2001:db8::1-2001:db8::ff"]),
        ("198.51.100.*", ["198.51.100.0/24"]),
        ("host web-*", ["web-*"]),
        ("what happened on *.corp.example?", ["*.corp.example"]),
    ],
)
def test_patterns_are_read(text, patterns):
    found = scope(text)
    expected = patterns or ["10.0.0.0/8", "192.168.0.0/16", "2001:db8::/32"]
    assert sorted(pattern.text for pattern in found.patterns) == expected
    assert (found.entities, found.doubts) == ((), ())


def test_a_network_of_one_address_and_a_list_are_addresses():
    found = scope("198.51.100.7/32, 198.51.100.8; 198.51.100.9")
    assert [entity.value for entity in found.entities] == [f"198.51.100.{n}" for n in (7, 8, 9)]
    assert not found.patterns
    far = scope("traffic from 198.51.100.7 to 192.0.2.10")
    assert far.entities == (WEB, SCANNER)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("198.51.100.0/33", "198.51.100.0/33"),
        ("198.51.100.9-198.51.100.2", "198.51.100.9-198.51.100.2"),
        ("203.0.113.5 and *", "*"),
        ("203.0.113.5 on port 22", "“port” and “22”"),
        ("src=203.0.113.5", "src="),
        ("did alice@example.com use the frobnicator?", "frobnicator"),
        ("incident 1 in berlin", "berlin"),
        ("export.example.com on port 22", "port"),
        ("203.0.113.5 since yesterday until monday", "monday"),
        ("one two three four five six seven eight nine ten eleven twelve thirteen", "thirteen"),
    ],
)
def test_what_is_not_understood_is_a_doubt(text, word):
    assert word in scope(text).doubts[0]


@pytest.mark.parametrize(
    "text",
    [
        "Could you please have a closer look at 203.0.113.5? It seems suspicious to me.",
        "is https://evil.example.com/a?b=c or hxxps://bad[.]example malicious?",
        r"what did CORP\alice do on host=web-1 and C:\Program Files\a.exe?",
        "what's going on with incidents 3-5 and #9 since yesterday?",
        "critical incidents of the last 24 hours",
        "T1110 in the last week",
        "show me the timeline of incident 12, severity: high",
        "strange lateral movement in finance",
    ],
)
def test_common_words_and_names_leave_no_doubt(text):
    assert scope(text).doubts == ()


def test_a_follow_up_that_names_it_again_removes_the_doubt():
    assert scope("203.0.113.5 on port 22", "and incident 1").doubts
    assert scope("203.0.113.5 on port 22", "only 203.0.113.5").doubts == ()


def test_patterns_can_be_left_out():
    found = scope("198.51.100.7, 198.51.100.8 and 203.0.113.5", "ignore 198.51.100.0/24")
    assert found.entities == (ip("203.0.113.5"),)
    assert found.ignores(SCANNER)
    assert not scope("ignore 198.51.100.0/24", "198.51.100.0/24").ignores(SCANNER)


async def test_a_network_is_answered_for_its_members_alone():
    """The network was dropped, everything was examined, and our web server to be isolated."""
    query = "who else has seen 198.51.100.0/24 in the last 3 days?"
    report, client = await investigate(WORLD, query)
    assert client.of_kind(FindEntities)
    assert report.incidents == (1,)
    assert report.title == "Investigation of 198.51.100.0/24"
    assert not any("isolate" in action.text.lower() for action in report.actions)
    assert {question.entity for question in client.of_kind(FindEvents)} == {SCANNER, WEB}
    assert says(report.gaps, "For the addresses 198.51.100.0/24, Tocsin searched only for events")


async def test_a_network_without_members_finds_nothing():
    report, _ = await investigate(WORLD, "203.0.113.0/24")
    assert (report.incidents, report.risk_score) == ((), 0)
    assert says(report.gaps, "involves the addresses 203.0.113.0/24")
    assert says(report.summary, "the addresses 203.0.113.0/24")


async def test_hosts_and_users_are_found_by_wildcards():
    other = incident(3, entities=(user("svc-backup"), host("pc-8")))
    world = World(incidents=[*WORLD.incidents, other])
    report, _ = await investigate(world, "hosts pc-*")
    assert report.incidents == (2, 3)
    report, _ = await investigate(world, "user svc-*")
    assert report.incidents == (3,)


async def test_words_that_are_not_understood_come_first_and_cost_advice_and_confidence():
    understood, _ = await investigate(WORLD, "incident 2")
    report, _ = await investigate(WORLD, "incident 2 on port 22")
    assert understood.actions
    assert (report.actions, report.confidence) == ((), Confidence.LOW)
    assert "“port” and “22”" in report.gaps[0].text
    assert report.verdict is understood.verdict
    advised, _ = await investigate(WORLD, "incident 2 on port 22: what should I do?")
    assert says(advised.summary, "No action is recommended, because part of the question")

"""Search results and their order, the same on both databases."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tocsin.errors import RequestError
from tocsin.knowledge.search import (
    SearchDocument,
    index_document,
    remove_document,
    render_snippet,
    search_documents,
)
from tocsin.knowledge.search.documents import index_documents
from tocsin.model import Entity, EntityKind

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def incident(number, title, text="", *, day=0, entities=(), **more):
    facets = {"severity": "High", "status": "New", "provider": "edge"}
    return SearchDocument(
        kind="incident",
        record=str(number),
        title=title,
        text=text,
        at=BEGIN + timedelta(days=day),
        facets=facets | {name: more.pop(name) for name in list(more) if name in facets},
        entities=[Entity(EntityKind(kind), value) for kind, value in entities],
        **more,
    )


DOCUMENTS = [
    incident(
        1,
        "SSH brute-force from 203.0.113.9",
        "47 failed logins for root from 203.0.113.9:50122 in 5 minutes",
        day=1,
        entities=[("ip", "203.0.113.9"), ("user", "root"), ("host", "WS-0042")],
        techniques=["T1110.001"],
        identifiers=["case-7", "INC0012345"],
    ),
    incident(
        2,
        "Suspicious PowerShell",
        "powershell.exe ran an encoded command and opened hxxps://mail.evil[.]example/gate.php",
        day=2,
        severity="Medium",
        provider="cloud",
        entities=[
            ("domain", "mail.evil.example"),
            ("user", "CORP\\Ana Núñez"),
            ("file_hash", "E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855"),
        ],
        techniques=["T1059"],
    ),
    incident(
        3,
        "Mail to many recipients",
        "From ana.nunez@corp.example; the force was brute, CVE-2024-3094 was named",
        day=3,
        status="Closed",
        entities=[("email", "ana.nunez@corp.example"), ("cve", "CVE-2024-3094"), ("ip", "fe80::1")],
    ),
    incident(
        4,
        "Straße und \uff26\uff55\uff4c\uff4c width",
        "Ünïcode ΣΊΣΥΦΟΣ 北京 naïve café",
        day=4,
        severity="Low",
    ),
    SearchDocument(
        kind="session",
        record="ses_1",
        title="Who tried brute force last night?",
        text="Root was tried 47 times. The address 203.0.113.9 is malicious.",
        at=BEGIN + timedelta(days=5),
        facets={"status": "completed", "persona": "threat-hunter", "verdict": "malicious"},
        entities=[Entity(EntityKind.IP, "203.0.113.9")],
    ),
    incident(6, "<script>alert('x')</script>", 'it\'s "quoted" \\ and * ( ) & | ! : <b>', day=6),
]

FOUND = {
    "powershell": ["2"],
    "POWERSHELL": ["2"],
    "203.0.113.9": ["1", "ses_1"],
    "ip:203.0.113.9": ["ses_1", "1"],
    "203.0.113": ["1", "ses_1"],  # by its parts, as three words
    "brute force": ["ses_1", "1", "3"],
    '"brute force"': ["ses_1", "1"],
    "brute-force": ["ses_1", "1"],
    "brute -ssh": ["ses_1", "3"],
    "brute severity:high": ["1", "3"],
    "brute kind:incident status:closed": ["3"],
    "verdict:malicious": ["ses_1"],
    "persona:Threat-Hunter": ["ses_1"],
    "provider:cloud": ["2"],
    "evil.example": ["2"],
    "mail.evil.example": ["2"],
    "https://mail.evil.example/gate.php": ["2"],
    "hxxps://mail[.]evil[.]example/gate.php": ["2"],
    "domain:mail.evil.example": ["2"],
    "domain:mail.*": ["2"],
    "domain:evil.example": [],
    "hash:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855": ["2"],
    "file_hash:e3b0*": ["2"],
    "e3b0c*": ["2"],
    'user:"corp\\ana núñez"': ["2"],
    "núñez": ["2"],
    "nunez": ["3"],
    "corp.example": ["3"],
    "ana.nunez@corp.example": ["3"],
    "cve-2024-3094": ["3"],
    "cve:CVE-2024-3094": ["3"],
    "technique:t1110": ["1"],
    "technique:t1110.001": ["1"],
    "id:case-7": ["1"],
    "inc0012345": ["1"],
    "ws-0042": ["1"],
    "host:WS-0042": ["1"],
    "ip:fe80::1": ["3"],
    "fe80::1": ["3"],
    "power*": ["2"],
    "sev* OR span* OR use* OR kin*": [],
    '"failed log"*': ["1"],
    "ssh OR powershell": ["2", "1"],
    "ssh OR powershell severity:high": ["1"],
    "-kind:session -severity:low": ["6", "3", "2", "1"],
    "before:2026-01-03": ["1"],
    "after:2026-01-05T00:00:00Z": ["6", "ses_1", "4"],
    "brute after:2026-01-03 before:2026-01-05": ["3"],
    "strasse": ["4"],
    "full": ["4"],
    "σίσυφος": ["4"],
    "北京": ["4"],
    "CAFÉ": ["4"],
    "cafe": [],
    "quoted": ["6"],
    "alert": ["6"],
    "nothing-of-the-kind": [],
    "root 47": ["1", "ses_1"],
    "powershell.exe": ["2"],
    '"command and opened"': ["2"],
    '"powershell powershell"': [],
}


@pytest.fixture
async def filled(database):
    await database.write(index_documents, DOCUMENTS)
    return database


async def test_every_query_finds_what_it_should(filled):
    found = {}
    for text in FOUND:
        page = await filled.read(search_documents, text, limit=50)
        found[text] = [result.id for result in page.results]
        assert (page.total, page.exact, page.next) == (len(page.results), True, None)
    assert found == FOUND


async def test_a_title_counts_for_more_than_an_entity_and_that_for_more_than_the_text(filled):
    page = await filled.read(search_documents, "203.0.113.9", limit=50)
    assert [(result.id, result.score) for result in page.results] == [("1", 1.0), ("ses_1", 0.667)]
    page = await filled.read(search_documents, "root", limit=50)
    assert [(result.id, result.score) for result in page.results] == [
        ("1", 0.667),
        ("ses_1", 0.333),
    ]
    page = await filled.read(search_documents, "roo* kind:incident", limit=50)
    assert [(result.id, result.score) for result in page.results] == [("1", 0.667)]


async def test_what_was_written_is_shown_as_text(filled):
    page = await filled.read(search_documents, "quoted", limit=1)
    [found] = page.results
    assert found.title == "<script>alert('x')</script>"
    assert render_snippet(found.snippet) == (
        "it&#x27;s &quot;<mark>quoted</mark>&quot; \\ and * ( ) &amp; | ! : &lt;b&gt;"
    )


async def test_indexing_again_replaces_what_was_there(filled):
    await filled.write(index_document, incident(2, "Solved", "a false alarm", status="Closed"))
    assert not (await filled.read(search_documents, "powershell", limit=9)).results
    [found] = (await filled.read(search_documents, "false status:closed", limit=9)).results
    assert found.id == "2"


async def test_a_removed_document_is_not_found(filled):
    await filled.write(remove_document, "session", "ses_1")
    assert not (await filled.read(search_documents, "kind:session", limit=9)).results
    await filled.write(remove_document, "session", "ses_1")


async def test_the_kinds_can_be_given_apart(filled):
    page = await filled.read(search_documents, "brute OR force", limit=9, kinds=["session"])
    assert [result.id for result in page.results] == ["ses_1"]
    with pytest.raises(RequestError, match="incident, session"):
        await filled.read(search_documents, "brute", limit=9, kinds=["report"])


async def test_pages_follow_each_other_without_gap_or_double(database):
    many = [incident(n, f"Beacon {'seen' if n % 7 else 'SEEN twice'}", day=n) for n in range(450)]
    await database.write(index_documents, many)
    seen, after, totals = [], None, []
    while True:
        page = await database.read(search_documents, "beacon", limit=60, after=after)
        seen += [int(result.id) for result in page.results]
        totals.append(page.total)
        if (after := page.next) is None:
            break
        if len(seen) == 120:  # what comes meanwhile is not part of the list
            await database.write(index_document, incident(1_000, "Beacon", day=1_000))
    assert len(seen) == 450
    assert set(seen) == set(range(450))
    assert set(totals) == {450}
    assert min(seen[:200]) == 250  # the latest are ranked first


async def test_a_phrase_does_not_reach_from_one_part_into_the_next(database):
    await database.write(
        index_documents,
        [incident(1, "Alpha", "bravo", entities=[("user", "corp\\charlie"), ("user", "delta")])],
    )
    for phrase in ("alpha bravo", "bravo corp", "charlie delta", "delta user", "corp delta"):
        assert not (await database.read(search_documents, f'"{phrase}"', limit=1)).results, phrase
    assert (await database.read(search_documents, '"corp charlie"', limit=1)).results


async def test_the_longest_documents_can_be_indexed(database):
    words = " ".join(["same"] * 20_000)
    others = " ".join(f"wörd{number:07}" for number in range(20_000))
    entities = [("url", f"https://e{n}.example/{'ü' * 1_900}") for n in range(1_000)]
    document = incident(1, "x" * 1_000, f"first {words} {others}", entities=entities)
    await database.write(index_document, document)
    assert (await database.read(search_documents, '"first same same"', limit=1)).results
    assert (
        await database.read(search_documents, "https://e3.example/" + "ü" * 900, limit=1)
    ).total == 0
    assert (await database.read(search_documents, "url:https://e3.example/*", limit=1)).total == 1

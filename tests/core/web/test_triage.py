"""Triage of incidents over HTTP: beside what the SIEM says, versioned, audited and polled."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from api_callers import INCIDENTS, Caller
from api_server import problem
from incident_rows import NOW, add_incidents, change_incident
from stored_documents import compare_documents
from tocsin.accounting import trace_incident
from tocsin.credentials import Scope
from tocsin.incidents.comments import MAX_COMMENTS
from tocsin.incidents.coverage.positions import StreamKey
from tocsin.incidents.documents import refresh_documents
from tocsin.incidents.storage.alerts import IncidentPolicy
from tocsin.incidents.storage.store import store_page
from tocsin.model import Incident, Page, Severity
from tocsin.store.tables import incident_triage
from tocsin.web.schemas.triage import MAX_TRIAGED

ONE = f"{INCIDENTS}/1"
COMMENTS = f"{ONE}/comments"
WRITES = (("PATCH", ONE, {"assignee": "a"}), ("POST", COMMENTS, {"text": "a"}))
on_one_database = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@pytest.fixture
def write(api):
    return api.services.database.write


async def test_a_triage_stands_beside_what_the_siem_says(api, analyst, write):
    await write(add_incidents, 2)
    before = await analyst.read(ONE)
    assert before["triage"] is None
    change = {
        "assignee": "ana",
        "acknowledged": True,
        "disposition": "False-Positive",
        "disposition_reason": "a test of the network team",
        "add_tags": ["Pentest", "vip"],
        "add_links": [2],
        "add_watchers": ["ben"],
    }
    answer = await analyst.ask("PATCH", ONE, json=change)
    now = answer["triage"]["acknowledged_at"]
    assert answer["triage"] == {
        "assignee": "ana",
        "acknowledged_by": "playbooks",
        "acknowledged_at": now,
        "disposition": "false-positive",
        "disposition_reason": "a test of the network team",
        "disposition_source": "playbook",
        "disposition_by": "playbooks",
        "disposition_at": now,
        "comment_count": 0,
        "tags": ["pentest", "vip"],
        "linked_incidents": [2],
        "watchers": ["ben"],
    }
    after = await analyst.read(ONE)
    same = before.keys() - {"triage", "updated_at"}
    assert {name: after[name] for name in same} == {name: before[name] for name in same}
    assert after["triage"] == answer["triage"]
    assert (await analyst.read(f"{INCIDENTS}/2"))["triage"]["linked_incidents"] == [1]
    await analyst.ask("PATCH", ONE, json={"remove_links": [2], "disposition": None})
    rest = (await analyst.read(ONE))["triage"]
    assert [rest[name] for name in rest if name.startswith("disposition")] == [None] * 5
    assert (rest["assignee"], rest["linked_incidents"]) == ("ana", [])
    assert (await analyst.read(f"{INCIDENTS}/2"))["triage"]["linked_incidents"] == []


async def test_changes_appear_in_polling_and_survive_later_versions(api, analyst, write):
    await write(add_incidents, 3)
    resume = (await analyst.read(INCIDENTS))["resume_cursor"]
    await analyst.ask("PATCH", ONE, json={"assignee": "ana"})
    await analyst.ask("POST", COMMENTS, 201, json={"text": "seen"})
    page = await analyst.read(INCIDENTS, changed_after=resume)
    [changed] = page["incidents"]
    assert (changed["number"], changed["triage"]["comment_count"]) == (1, 1)
    await write(change_incident, 1, now=NOW, title="Renamed")
    page = await analyst.read(INCIDENTS, changed_after=page["resume_cursor"])
    assert [(one["title"], one["triage"]["assignee"]) for one in page["incidents"]] == [
        ("Renamed", "ana")
    ]
    assert await api.services.database.read(compare_documents) == 3


async def test_a_sync_keeps_the_triage_in_the_document(api, analyst, write):
    key, policy = StreamKey("edge", "changed"), IncidentPolicy("https://tocsin.example")
    for revision, title in enumerate(["Odd", "Odder"]):
        incident = Incident(external_id="1", title=title, severity=Severity.HIGH, occurred_at=NOW)
        page = Page(next_position={"at": revision}, incidents=(incident,))
        await write(store_page, key, page, revision=revision, policy=policy, now=NOW)
        await analyst.ask("PATCH", ONE, json={"add_tags": [title]})
    found = await analyst.read(ONE)
    assert (found["title"], found["triage"]["tags"]) == ("Odder", ["odd", "odder"])
    assert await api.services.database.read(compare_documents) == 1


async def test_a_change_of_an_outdated_version_is_refused(analyst, write):
    await write(add_incidents)
    read = await analyst.send("GET", ONE)
    held = {"If-Match": read.headers["ETag"]}
    changed = await analyst.send("PATCH", ONE, headers=held, json={"assignee": "ana"})
    assert changed.status == 200
    current = changed.headers["ETag"]
    assert current == (await analyst.send("GET", ONE)).headers["ETag"]
    for method, path, body in (
        ("PATCH", ONE, {"assignee": "ben"}),
        ("POST", COMMENTS, {"text": "late"}),
    ):
        refused = await analyst.send(method, path, headers=held, json=body)
        document = await problem(refused, 412)
        assert current in document["detail"]
        assert refused.headers["ETag"] == current
    weak = await analyst.send(
        "PATCH", ONE, headers={"If-Match": f"W/{current}"}, json={"assignee": "ben"}
    )
    assert weak.status == 412
    for tag in ("*", f'"other", {current}', f'W/"other", {current}'):
        agreed = await analyst.send(
            "PATCH", ONE, headers={"If-Match": tag}, json={"assignee": "ana"}
        )
        assert (agreed.status, agreed.headers["ETag"]) == (200, current)


async def test_each_change_is_audited_and_in_the_trace(api, admin, analyst, write):
    await write(add_incidents)
    await analyst.ask("PATCH", ONE, json={"assignee": "ana"})
    await analyst.ask("PATCH", ONE, json={"assignee": "ana", "remove_tags": ["none"]})
    comment = await analyst.ask("POST", COMMENTS, 201, json={"text": "seen"})
    entries = await admin.audited(target="incident:1")
    assert [(each["action"], each["details"]) for each in entries] == [
        ("incident.comment", {"comment": comment["id"]}),
        ("incident.triage", {"assignee": {"from": None, "to": "ana"}}),
    ]
    trace = await api.services.database.read(trace_incident, 1)
    changes = [(each["actor"], each["members"]) for each in trace["triage"]]
    actor = entries[0]["actor"]
    assert changes == [
        (actor, [{"name": "assignee", "from": None, "to": "ana"}]),
        (actor, [{"name": "comments", "from": None, "to": comment["id"]}]),
    ]


FILTERS = {
    "assignee=ana": [1],
    "assignee=none": [4, 3, 2],
    "disposition=DUPLICATE": [2],
    "disposition=none": [4, 3, 1],
    "acknowledged=true": [1],
    "acknowledged=false&severity=high": [4, 3, 2],
    "tag=VIP": [3],
    "watcher=ben": [3],
    "tag=vip&assignee=ana": [],
}


async def test_incidents_are_filtered_by_triage(analyst, write):
    await write(add_incidents, 4)
    for number, change in enumerate(
        (
            {"assignee": "ana", "acknowledged": True},
            {"disposition": "duplicate"},
            {"add_tags": ["vip"], "add_watchers": ["ben"]},
        ),
        1,
    ):
        await analyst.ask("PATCH", f"{INCIDENTS}/{number}", json=change)
    for query, expected in FILTERS.items():
        page = await analyst.ask("GET", f"{INCIDENTS}?{query}")
        assert sorted((one["number"] for one in page["incidents"]), reverse=True) == expected, query
        assert page["total"] == len(expected)
    first = await analyst.ask("GET", f"{INCIDENTS}?assignee=none&limit=2")
    rest = await analyst.read(INCIDENTS, assignee="none", cursor=first["next_cursor"])
    numbers = [one["number"] for page in (first, rest) for one in page["incidents"]]
    assert sorted(numbers) == [2, 3, 4]


@pytest.mark.parametrize(
    ("sort", "expected"), [("Occurred", [3, 1, 5, 4, 2]), ("severity", [4, 5, 2, 3, 1])]
)
async def test_incidents_are_sorted_over_pages(analyst, write, sort, expected):
    severities = ("Low", "High", "Low", "Critical", "High")
    for severity, hour in zip(severities, (4, 1, 5, 2, 3), strict=True):
        occurred = NOW + timedelta(hours=hour)
        await write(add_incidents, severity=severity, occurred_at=occurred)
    seen, cursor = [], {}
    while True:
        page = await analyst.read(INCIDENTS, sort=sort, limit=2, **cursor)
        assert page["total"] == 5
        seen += [one["number"] for one in page["incidents"]]
        if page["next_cursor"] is None:
            break
        cursor = {"cursor": page["next_cursor"]}
    assert seen == expected
    first = await analyst.read(INCIDENTS, sort=sort, limit=1)
    refused = await analyst.ask("GET", f"{INCIDENTS}?cursor={first['next_cursor']}", 422)
    assert "the same sort" in str(refused)
    query = f"sort={sort}&changed_after={first['resume_cursor']}"
    assert "omit sort" in str(await analyst.ask("GET", f"{INCIDENTS}?{query}", 422))
    high = await analyst.read(INCIDENTS, sort=sort, severity="high")
    assert sorted(one["number"] for one in high["incidents"]) == [2, 5]


async def test_incidents_are_filtered_by_provider(analyst, write):
    await write(add_incidents, 2)
    await write(add_incidents, provider="cloud")
    page = await analyst.read(INCIDENTS, provider="cloud")
    assert ([one["number"] for one in page["incidents"]], page["total"]) == ([3], 1)


async def test_several_incidents_are_triaged_and_each_outcome_is_told(api, admin, analyst, write):
    await write(add_incidents, 4)
    await analyst.ask("PATCH", f"{INCIDENTS}/2", json={"assignee": "ana", "add_links": [3]})
    body = {"numbers": [4, 3.0, 2, 9, 4], "change": {"assignee": "ana", "add_links": [3]}}
    results = (await analyst.ask("PATCH", INCIDENTS, json=body))["results"]
    assert [(each["number"], each["outcome"]) for each in results] == [
        (4, "updated"),
        (3, "refused"),
        (2, "unchanged"),
        (9, "not-found"),
    ]
    assert results[1]["detail"] == "Incident 3 cannot be linked to itself."
    triage = {n: (await analyst.read(f"{INCIDENTS}/{n}"))["triage"] for n in (3, 4)}
    assert (triage[3]["assignee"], triage[3]["linked_incidents"]) == (None, [2, 4])
    assert triage[4]["assignee"] == "ana"
    entries = await admin.audited(target="incident:4")
    assert [(each["action"], each["details"]["assignee"]) for each in entries] == [
        ("incident.triage", {"from": None, "to": "ana"})
    ]
    assert len(await admin.audited(action="incident.triage")) == 2
    assert await api.services.database.read(compare_documents) == 4


@on_one_database
async def test_the_number_of_incidents_that_one_request_triages_is_bounded(api, analyst, write):
    change = {"assignee": "ana"}
    for numbers in ([], list(range(1, MAX_TRIAGED + 2)), [0]):
        body = {"numbers": numbers, "change": change}
        assert "numbers" in str(await analyst.ask("PATCH", INCIDENTS, 422, json=body))
    await analyst.ask("PATCH", INCIDENTS, 422, json={"numbers": [1], "change": {}})
    reader = Caller(api, await api.reader())
    body = {"numbers": [1], "change": change}
    refused = await reader.ask("PATCH", INCIDENTS, 403, json=body)
    assert refused["required_scope"] == "incidents:write"


async def test_comments_are_listed_in_pages_and_found(api, analyst, write, add):
    await add()
    for text in ("first", "the <b>network</b> team knows", "third"):
        await analyst.ask("POST", COMMENTS, 201, json={"text": text})
    page = await analyst.read(COMMENTS, limit=2)
    assert [each["text"] for each in page["comments"]] == ["third", "the <b>network</b> team knows"]
    rest = await analyst.read(COMMENTS, cursor=page["next_cursor"])
    assert [each["text"] for each in rest["comments"]] == ["first"]
    assert (page["total"], rest["next_cursor"]) == (3, None)
    await add()  # which brings the index up to date
    found = await analyst.read("/api/v1/search", q="network team")
    assert [each["id"] for each in found["results"]] == ["1"]


@on_one_database
async def test_only_the_new_scope_writes_and_tells_nothing_else(api, write):
    await write(add_incidents)
    reader = Caller(api, await api.reader())
    writer = Caller(api, {"X-API-Key": await api.key(Scope.INCIDENTS_WRITE)})
    for method, path, body in (
        ("PATCH", ONE, {"assignee": "a"}),
        ("POST", COMMENTS, {"text": "a"}),
    ):
        document = await reader.ask(method, path, 403, json=body)
        assert document["required_scope"] == "incidents:write"
    answer = await writer.ask("PATCH", ONE, json={"assignee": "a"})
    assert answer.keys() == {"number", "triage", "url"}
    assert (await writer.ask("GET", ONE, 403))["required_scope"] == "incidents:read"


WRONG = {
    "nothing": ({}, "provide at least one member"),
    "unknown": ({"status": "Closed"}, "unknown key"),
    "disposition": ({"disposition": "wrong"}, "use one of: true-positive"),
    "reason alone": ({"disposition_reason": "so"}, "also send `disposition`"),
    "itself": ({"add_links": [1]}, "cannot be linked to itself"),
    "no such incident": ({"add_links": [9]}, "There is no incident 9"),
    "too long": ({"add_tags": ["x" * 61]}, "add_tags"),
    "control characters": ({"add_tags": ["a\nb"]}, "add_tags"),
    "too many": ({"add_tags": [str(n) for n in range(51)]}, "add_tags"),
}


@on_one_database
async def test_what_cannot_be_stored_is_refused_and_changes_nothing(api, analyst, write):
    await write(add_incidents)
    for name, (body, words) in WRONG.items():
        document = await analyst.ask("PATCH", ONE, 422, json=body)
        assert words in str(document), name
    await analyst.ask("PATCH", ONE, json={"add_tags": [str(n) for n in range(30)]})
    more = {"add_tags": [str(n) for n in range(20, 51)]}
    assert "at most 50 tags" in (await analyst.ask("PATCH", ONE, 422, json=more))["detail"]
    assert len((await analyst.read(ONE))["triage"]["tags"]) == 30
    for text in ("", "  ", "x" * 5_001):
        await analyst.ask("POST", COMMENTS, 422, json={"text": text})
    for method, path, body in (
        ("PATCH", "", {"assignee": "a"}),
        ("POST", "/comments", {"text": "a"}),
    ):
        for number in ("2", "0", "x"):
            await analyst.ask(method, f"{INCIDENTS}/{number}{path}", 404, json=body)
    await analyst.ask("GET", f"{INCIDENTS}/2/comments", 404)


@on_one_database
async def test_an_incident_takes_a_bounded_number_of_comments(api, analyst, write):
    await write(add_incidents)
    await analyst.ask("POST", COMMENTS, 201, json={"text": "a"})

    def fill(connection) -> None:
        connection.execute(incident_triage.update().values(comment_count=MAX_COMMENTS))
        refresh_documents(connection, [1])

    await write(fill)
    document = await analyst.ask("POST", COMMENTS, 409, json={"text": "b"})
    assert str(MAX_COMMENTS) in document["detail"]


async def test_changes_of_two_nodes_at_once_are_all_kept(nodes):
    first, second = nodes
    await first.services.database.write(add_incidents, 2)
    callers = [Caller(node, await node.analyst()) for node in (first, second)]
    bodies = [{"add_tags": [f"t{n}"], "add_links": [2]} for n in range(6)]
    await asyncio.gather(
        *(callers[n % 2].ask("PATCH", ONE, json=body) for n, body in enumerate(bodies)),
        *(callers[n % 2].ask("PATCH", f"{INCIDENTS}/2", json={"add_links": [1]}) for n in range(2)),
    )
    triage = (await callers[0].read(ONE))["triage"]
    assert triage["tags"] == [f"t{n}" for n in range(6)]
    assert await first.services.database.read(compare_documents) == 2

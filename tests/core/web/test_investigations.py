"""Reading investigations over HTTP: lists, reports in every form, and the ledger."""

from __future__ import annotations

import re
from html import unescape
from html.parser import HTMLParser

import pytest
from sqlalchemy import update

from api_server import URL, problem
from report_samples import HOSTILE, brute_force, hostile
from session_rows import NOW, add_session
from tocsin import investigations
from tocsin.investigations import create_session
from tocsin.investigations.sessions.ledger import LedgerStep, append_steps
from tocsin.model import Persona, Phase
from tocsin.reports import CONTENT_SECURITY_POLICY, to_html, to_json, to_markdown
from tocsin.store.tables import sessions
from tocsin.store.text import clean_text
from tocsin.web.pagination import PageCursor
from tocsin.web.schemas.examples import SCHEDULE_ID
from tocsin.web.schemas.investigations import (
    STEPS,
    InvestigationList,
    SessionStepDetail,
    SessionSteps,
)

LIST = "/api/v1/investigations"
PARTS = ["report.json", "report.md", "report.html", "findings", "entities", "timeline"]
NOWHERE = ["x", "ses_x", "ses_01KAJE0M5Y7R3S9T2V4W6X8Z1A", "%00", "%ED%B3%BF"]

on_one_database = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@pytest.fixture
async def session_id(api) -> str:
    return await api.services.database.write(add_session)


def path_of(session_id: str, part: str = "") -> str:
    return f"{LIST}/{session_id}{'/' if part else ''}{part}"


async def ask(api, **values) -> str:
    """Store a session that waits to be investigated."""
    usual = {"query": "what?", "persona": Persona.ANALYST, "provider": None, "by": "ana"}
    return await api.services.database.write(create_session, **(usual | values), now=NOW)


async def ids(analyst, **query) -> list[str]:
    page = await analyst.read(LIST, **query)
    InvestigationList.model_validate(page)
    return [session["id"] for session in page["investigations"]]


async def test_the_list_has_the_newest_first_without_messages_and_reports(api, analyst, session_id):
    newest = await ask(api)
    assert await ids(analyst) == [newest, session_id]
    [_, shown] = (await analyst.read(LIST))["investigations"]
    assert shown["url"] == f"{URL}/investigations/{session_id}"
    assert (shown["risk_score"], shown["verdict"]) == (82.5, "malicious")
    assert shown == await analyst.read(path_of(session_id))
    assert shown.keys().isdisjoint({"messages", "report"})


async def test_pages_follow_by_cursor_and_by_link(api, analyst):
    every = [await ask(api) for _ in range(5)][::-1]
    found, query, pages = [], {"limit": "2"}, 0
    while query:
        response = await analyst.send("GET", LIST, params=query)
        page = await response.json()
        assert (page["total"], page["total_relation"]) == (5, "eq")
        found += [session["id"] for session in page["investigations"]]
        query, pages = (
            dict(response.links["next"]["url"].query) if response.links else {},
            pages + 1,
        )
        assert query.get("cursor") == page["next_cursor"]
    assert (found, pages) == (every, 3)


async def test_what_comes_while_pages_are_turned_is_on_none_of_them(api, analyst):
    every = [await ask(api) for _ in range(4)][::-1]
    first = await analyst.read(LIST, limit=2)
    await ask(api)
    assert await ids(analyst, cursor=first["next_cursor"], limit=2) == every[2:]


@on_one_database
async def test_the_list_is_narrowed_by_status_persona_and_provider(api, analyst, session_id):
    hunt = await ask(api, persona=Persona.THREAT_HUNTER, provider="edge")
    assert await ids(analyst, status="COMPLETED") == [session_id]
    assert await ids(analyst, status="queued", persona="Threat-Hunter") == [hunt]
    assert await ids(analyst, provider="edge") == [hunt]
    assert await ids(analyst, provider="edge", status="failed") == []


async def test_the_list_is_narrowed_to_the_runs_of_a_schedule(api, analyst, session_id):
    runs = [await ask(api, schedule_id=SCHEDULE_ID) for _ in range(2)]
    await ask(api, schedule_id=f"{SCHEDULE_ID[:-1]}Z")
    assert await ids(analyst, schedule=SCHEDULE_ID) == runs[::-1]
    assert await ids(analyst, schedule=SCHEDULE_ID, status="completed") == []
    assert await ids(analyst, schedule=session_id) == []


WRONG = {
    "unknown status": "status=done",
    "unknown persona": "persona=boss",
    "too many": "limit=201",
    "empty cursor": "cursor=",
    "made up": "cursor=ZDEw1",
    "another list's": f"cursor={PageCursor('k', '0').encode()}",
    "the ledger's": f"cursor={PageCursor(STEPS, '1').encode()}",
    "no schedule": "schedule=",
    "unknown": "schedul=1",
}


@on_one_database
async def test_a_wrong_query_is_a_problem_of_the_callers(analyst):
    for what, query in WRONG.items():
        document = await problem(await analyst.send("GET", f"{LIST}?{query}"), 422)
        assert len(document["errors"]) == 1, what


@on_one_database
async def test_the_report_comes_as_json_markdown_and_html(api, analyst, session_id):
    meanings = await api.services.database.read(investigations.describe_steps, session_id)
    report = brute_force()
    assert await analyst.read(path_of(session_id, "report.json")) == to_json(report)
    for part, media_type, text in (
        ("report.md", "text/markdown", to_markdown(report, meanings)),
        ("report.html", "text/html", to_html(report, meanings)),
    ):
        response = await analyst.send("GET", path_of(session_id, part))
        assert (response.content_type, response.charset) == (media_type, "utf-8")
        assert await response.text() == text
    session = await analyst.read(f"/api/v1/sessions/{session_id}")
    assert session["report"] == to_markdown(report, meanings)


@on_one_database
async def test_the_page_says_itself_what_it_may_do_and_is_not_sent_again_unchanged(
    api, analyst, session_id
):
    path = path_of(session_id, "report.html")
    first = await analyst.send("GET", path)
    policy = f"{CONTENT_SECURITY_POLICY}; frame-ancestors 'none'"
    assert first.headers.getall("Content-Security-Policy") == [policy]
    held = {"If-None-Match": first.headers["ETag"]}
    again = await analyst.send("GET", path, headers=held)
    assert (again.status, await again.read()) == (304, b"")
    assert again.headers.getall("Content-Security-Policy") == [policy]
    change = update(sessions).values(report=to_json(hostile("other")))
    await api.services.database.write(lambda connection: connection.execute(change) and None)
    assert (await analyst.send("GET", path, headers=held)).status == 200


@on_one_database
async def test_other_answers_keep_the_policy_that_allows_nothing(analyst, session_id):
    for part in ("report.md", "report.json", "findings"):
        response = await analyst.send("GET", path_of(session_id, part))
        policy = response.headers["Content-Security-Policy"]
        assert policy == "default-src 'none'; frame-ancestors 'none'"


@on_one_database
async def test_a_form_that_the_caller_does_not_take_is_not_acceptable(analyst, session_id):
    accept = {"Accept": "application/json"}
    for part in ("report.md", "report.html"):
        await problem(await analyst.send("GET", path_of(session_id, part), headers=accept), 406)
    await analyst.ask("GET", path_of(session_id, "report.json"), headers=accept)


@on_one_database
async def test_findings_entities_and_timeline_are_those_of_the_report(analyst, session_id):
    report = to_json(brute_force())
    for part in ("findings", "entities", "timeline"):
        answer = await analyst.read(path_of(session_id, part))
        assert answer == {part: report[part], "total": len(report[part])}
        assert answer["total"] > 0


@on_one_database
async def test_there_is_no_report_before_a_run_has_completed(api, analyst):
    waiting = await ask(api)
    for part in PARTS:
        await problem(await analyst.send("GET", path_of(waiting, part)), 404)


async def test_an_id_that_leads_to_nothing_is_not_found(analyst):
    for session_id in NOWHERE:
        for part in ("", *PARTS, "steps", "steps/1"):
            await problem(await analyst.send("GET", path_of(session_id, part)), 404)


async def add_steps(api, session_id: str, count: int) -> None:
    """Have the session's second run conclude so often."""
    concluded = {"run": 2, "phase": Phase.SCORE, "kind": "conclusion", "conclusion": "So it is."}
    steps = [
        LedgerStep(number=3 + n, **concluded, evidence=("step:1",), started_at=NOW, elapsed_ms=n)
        for n in range(count)
    ]
    await api.services.database.write(append_steps, session_id, steps)


async def test_the_ledger_is_paged_in_its_order(api, analyst, session_id):
    await add_steps(api, session_id, 3)
    path, found, query = path_of(session_id, "steps"), [], {"limit": "2"}
    while query:
        response = await analyst.send("GET", path, params=query)
        page = await response.json()
        SessionSteps.model_validate(page)
        assert page["total"] == 5
        found += [step["number"] for step in page["steps"]]
        query = dict(response.links["next"]["url"].query) if response.links else {}
    assert found == [1, 2, 3, 4, 5]


async def test_the_ledger_is_narrowed_to_a_run(api, analyst, session_id):
    await add_steps(api, session_id, 3)
    path = path_of(session_id, "steps")
    page = await analyst.read(path, run=2, limit=2)
    assert ([step["number"] for step in page["steps"]], page["total"]) == ([3, 4], 3)
    page = await analyst.read(path, run=2, limit=2, cursor=page["next_cursor"])
    assert [step["number"] for step in page["steps"]] == [5]
    assert (await analyst.read(path, run=999_999))["steps"] == []


async def test_a_cursor_beyond_the_ledger_leads_to_its_end(analyst, session_id):
    cursor = PageCursor(STEPS, "9" * 18).encode()
    page = await analyst.read(path_of(session_id, "steps"), cursor=cursor)
    assert (page["steps"], page["next_cursor"]) == ([], None)


async def test_a_step_is_read_with_what_was_answered(analyst, session_id):
    question, conclusion = (await analyst.read(path_of(session_id, "steps")))["steps"]
    asked = await analyst.read(path_of(session_id, "steps/1"))
    SessionStepDetail.model_validate(asked)
    assert asked == {**question, "answer": []}
    assert (asked["asked_of"], asked["question"]) == ("incidents", {"numbers": [1]})
    assert await analyst.read(path_of(session_id, "steps/2")) == {**conclusion, "answer": None}
    assert (conclusion["conclusion"], conclusion["evidence"]) == (
        "The risk score is 78.",
        ["step:1"],
    )


async def test_a_step_that_is_not_there_is_not_found(analyst, session_id):
    for step in ("3", "0", "-1", "x", "1.0", "٣", "9" * 9, "9" * 30):
        await problem(await analyst.send("GET", path_of(session_id, f"steps/{step}")), 404)


class Elements(HTMLParser):
    """The elements of a page, with their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict]] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


# What the database never holds is not in a report either
STORED = [clean_text(text, 1_000) for text in HOSTILE]


@on_one_database
async def test_whatever_a_report_says_stays_text_in_every_form(api, analyst):
    report = hostile("\n".join(STORED))
    session_id = await api.services.database.write(add_session, report=report)
    page = await (await analyst.send("GET", path_of(session_id, "report.html"))).text()
    elements = Elements(page).found
    assert {"script", "img", "iframe", "link", "form"}.isdisjoint(tag for tag, _ in elements)
    links = {attributes["href"] for tag, attributes in elements if tag == "a"}
    assert all(link.startswith("#") for link in links)
    assert not [name for _, attributes in elements for name in attributes if name.startswith("on")]
    assert "{{ 7*7 }}" in unescape(page)
    markdown = await (await analyst.send("GET", path_of(session_id, "report.md"))).text()
    assert not re.search(r"(?<!\\)(<script|\]\(http)", re.sub("`[^`]+`", "", markdown))
    assert await analyst.read(path_of(session_id, "report.json")) == to_json(report)

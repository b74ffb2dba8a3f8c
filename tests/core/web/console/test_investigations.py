"""Investigations as a person sees them: while they run, their reports, and going on from them."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from urllib.parse import unquote

import pytest
from sqlalchemy import select, update
from yarl import URL

from console import text_of
from report_samples import HOSTILE, brute_force, empty, hostile, huge
from schedule_harness import Office
from session_rows import NOW, add_session
from tocsin.investigations import create_session
from tocsin.investigations.sessions.ledger import LedgerStep, append_steps
from tocsin.model import Persona, Phase, QueryOutcome, Section
from tocsin.store.tables import events, sessions
from tocsin.store.text import clean_text

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)

LIST = "/investigations"


@pytest.fixture
async def done(api) -> str:
    """The path of a session that has completed."""
    return f"{LIST}/{await api.services.database.write(add_session)}"


@pytest.fixture
async def begun(api) -> str:
    """The path of a session that waits to be investigated."""
    asked = {"query": "what?", "persona": Persona.ANALYST, "provider": None, "by": "ana"}
    return f"{LIST}/{await api.services.database.write(create_session, **asked, now=NOW)}"


async def set_sessions(api, **values) -> None:
    statement = update(sessions).values(**values)
    await api.services.database.write(lambda connection: connection.execute(statement) and None)


def ask(number: int, **values) -> LedgerStep:
    asked = {
        "number": number,
        "run": 1,
        "phase": Phase.GATHER,
        "kind": "sightings-of",
        "asked_of": "graph",
        "question": '{"entities": [{"kind": "ip", "value": "203.0.113.9"}]}',
        "outcome": QueryOutcome.ANSWERED,
        "answer": "[]",
        "started_at": NOW,
        "elapsed_ms": 3,
    }
    return LedgerStep(**(asked | values))


async def note(api, path: str, *steps: LedgerStep) -> None:
    await api.services.database.write(append_steps, path.rpartition("/")[2], list(steps))


async def test_without_investigations_an_admin_is_offered_to_begin(person):
    assert "No investigations yet. Start one above." in await person.text(LIST)
    assert '<details id="start" class="card" open>' in await person.html(LIST)


async def test_the_list_tells_what_each_came_to(person, done, begun):
    html = await person.html(LIST)
    assert html.index(f'href="{begun}"') < html.index(f'href="{done}"')
    text = await person.text(LIST)
    for words in ("SSH brute force", "completed", "malicious", "high confidence", "82.5", "queued"):
        assert words in text


async def test_the_list_is_narrowed_by_status_persona_provider_and_schedule(person, done, begun):
    for query in ("status=QUEUED", "status=queued&persona=analyst&provider="):
        html = await person.html(f"{LIST}?{query}")
        assert begun in html
        assert done not in html
    for query in ("persona=executive", "provider=edge", "schedule=sch_1", "status=failed"):
        text = await person.text(f"{LIST}?{query}")
        assert "No investigations match these filters." in text


@pytest.mark.parametrize("query", ["status=done", "persona=boss", "cursor=x", "provider=%00"])
async def test_a_wrong_filter_is_told_what_is_right(person, query):
    assert query.partition("=")[0] in await person.text(f"{LIST}?{query}", 422)


async def test_what_is_started_is_followed_on_its_page(api, person):
    fields = {"query": "Is 203.0.113.7 still at it?", "persona": "executive", "provider": "edge"}
    text = await person.submit(LIST, f"{LIST}/start", **fields)
    for words in ("Investigation queued.", "203.0.113.7", "executive", "edge", "queued"):
        assert words in text


async def test_a_start_that_is_wrong_is_told_what_is_right_and_keeps_what_was_written(person):
    fields = {"query": "who is <b>it?", "provider": "egde"}
    text = await person.submit(LIST, f"{LIST}/start", 422, **fields)
    assert "there is no provider 'egde'" in text
    assert "who is <b>it?" in text
    assert "query" in await person.submit(LIST, f"{LIST}/start", 422, query="  ")


async def test_one_that_waits_or_runs_is_kept_up_to_date(api, person, begun):
    html = await person.html(begun)
    assert f'data-live="/live{begun}?' in html
    await set_sessions(
        api, status="running", progress={"phase": "gather", "steps": 30, "asked": 28}
    )
    await note(api, begun, *(ask(number) for number in range(1, 31)))
    html = await person.html(begun)
    assert '<li aria-current="step">gather</li>' in html
    numbers = re.findall(rf'href="{begun}/steps/(\d+)"', html)
    assert numbers == [str(number) for number in range(30, 18, -1)]


async def test_of_a_follow_up_the_latest_steps_are_shown_too(api, person, done):
    await person.submit(done, f"{done}/message", message="and then?")
    await set_sessions(api, status="running", progress={"phase": "gather", "steps": 30, "asked": 9})
    await note(api, done, *(ask(number, run=2) for number in range(3, 33)))
    html = await person.html(done)
    latest = html.partition("Latest steps")[2].partition("</section>")[0]
    assert re.findall(rf'href="{done}/steps/(\d+)"', latest) == [str(n) for n in range(32, 20, -1)]


async def test_one_that_has_ended_is_not_watched_any_more(person, done):
    html = await person.html(done)
    assert "data-live=" not in html
    assert "data-settled" in html


async def test_one_can_be_cancelled_while_it_runs(person, begun):
    assert "cancelled" in await person.submit(begun, f"{begun}/cancel")
    assert f'action="{begun}/cancel"' not in await person.html(begun)


async def test_one_that_has_failed_says_why(api, person, begun):
    await set_sessions(api, status="failed", error="incident 404 does not exist")
    assert "Investigation failed: incident 404 does not exist" in await person.text(begun)


async def test_the_report_says_everything_that_was_found(person, done):
    text, report = await person.text(done), brute_force()
    said = [
        *report.summary,
        *report.gaps,
        *(contribution.statement for contribution in report.contributions),
    ]
    said += [moment.statement for moment in report.timeline] + [
        action.reason for action in report.actions
    ]
    said += [statement for finding in report.findings for statement in finding.statements]
    said += [statement for each in report.entities for statement in each.statements]
    for statement in said:
        assert statement.text in text
    for words in ("malicious", "high confidence", "82.5", "-7.5", "+35", "urgent", "T1110.001"):
        assert words in text


async def test_every_sentence_leads_to_what_it_is_known_from(person, done):
    html = await person.html(done)
    for place in (f"{done}/steps/4", f"{done}/steps/13", "/incidents/7", "/incidents/3"):
        assert f'<a href="{place}">' in html
    for place in ("/graph?entity=203.0.113.9&amp;kind=ip", "/graph?entity=cdn.evil.example"):
        assert place in html


async def test_both_drawings_stand_beside_the_same_in_words(person, done):
    html = await person.html(done)
    assert html.count('<svg class="box') == len(brute_force().entities)
    assert '<svg class="timeline"' in html
    assert '<svg class="gauge malicious"' in html
    assert "style=" not in html


async def test_a_persona_sees_the_parts_that_are_meant_for_it_in_their_order(api, person):
    report = replace(brute_force(), sections=(Section.ACTIONS, Section.SCORE))
    session_id = await api.services.database.write(add_session, report=report)
    html = await person.html(f"{LIST}/{session_id}")
    assert re.findall(r'<section class="card" id="(\w+)">\n<h2>', html)[:2] == ["actions", "score"]
    assert "Findings <span" not in html


async def test_a_report_of_nothing_says_none(api, person):
    session_id = await api.services.database.write(add_session, report=empty())
    text = await person.text(f"{LIST}/{session_id}")
    words = (
        "No contributions.",
        "No events.",
        "No findings.",
        "No entities.",
        "No gaps.",
        "No recommended actions.",
    )
    assert len(words) == len(Section) - 1  # without the evidence, which has no part of its own
    assert [text.count(word) for word in words] == [1] * len(words)


async def test_a_report_can_be_taken_along_as_markdown(api, person, analyst, done):
    session = await analyst.read(f"/api/v1/sessions/{done.rpartition('/')[2]}")
    href = re.search(
        r'download="ses_\w+\.md" href="data:text/markdown;charset=utf-8,([^"]*)"',
        await person.html(done),
    )
    assert unquote(href[1]) == session["report"]


@pytest.mark.full
async def test_a_huge_report_is_bounded_and_says_so(api, person):
    session_id = await api.services.database.write(add_session, report=huge())
    html = await person.html(f"{LIST}/{session_id}")
    assert "4,750 more are not shown." in html
    assert len(html) < 3_000_000


@pytest.mark.parametrize("text", [*HOSTILE[:8], "{{ 7*7 }} {% for x in y %}"])
async def test_hostile_text_is_shown_as_text(api, person, text):
    text = clean_text(text, 1_000)
    write = api.services.database.write
    session_id = await write(add_session, report=hostile(text), query=text, error=text)
    path = f"{LIST}/{session_id}"
    hits = [ask(3, kind=text, asked_of=text, reason=text, conclusion=text, evidence=(text,))]
    await note(api, path, *hits)
    for page in (LIST, path, f"{path}/steps", f"{path}/steps/3"):
        html = await person.html(page)
        for part in ("<script>alert", "<img src=x", 'href="http', "javascript:"):
            assert part not in html.replace('href="https://attack.mitre.org/', ""), page
        assert " ".join(text.split()) in " ".join(unescape(html).split())


async def test_a_follow_up_goes_on_and_the_report_stays_readable(person, done):
    text = await person.submit(done, f"{done}/message", message="did they get in?")
    for words in (
        "did they get in?",
        "queued",
        "This report is from the previous run",
        "malicious",
    ):
        assert words in text
    assert "Ask a follow-up" not in text


async def test_an_empty_follow_up_is_told_what_is_missing(person, done):
    assert "message" in await person.submit(done, f"{done}/message", 422, message=" ")


async def test_a_follow_up_that_comes_too_late_is_told_why(person, done):
    html = await person.html(done)
    token = re.search(r'name="form_token" value="(\w+)"', html)[1]
    fields = {"form_token": token, "message": "and then?"}
    assert (await person.post(f"{done}/message", **fields)).status == 303
    response = await person.post(f"{done}/message", **fields)
    assert response.status == 409
    assert "wait until it has completed" in text_of(await response.text())


async def test_a_viewer_reads_everything_and_changes_nothing(api, viewer, done, begun):
    for page in (LIST, done, begun, f"{done}/steps", f"{done}/steps/1"):
        assert 'method="post"' not in (await viewer.html(page)).partition("<main")[2]
    for action in (f"{LIST}/start", f"{done}/message", f"{begun}/cancel"):
        assert (await viewer.post(action)).status == 403


async def test_the_ledger_has_every_step_and_each_leads_to_its_answer(api, person, done):
    known = '[{"entity": {"kind": "ip", "value": "203.0.113.9"}, "incident_count": 3}]'
    late = ask(4, outcome=QueryOutcome.UNAVAILABLE, answer=None, reason="it is away")
    await note(api, done, ask(3, answer=known), late)
    text = await person.text(f"{done}/steps")
    for words in ("sightings of 203.0.113.9", "graph", "it is away", "The risk score is 78."):
        assert words in text
    assert f'href="{done}/steps/3"' in await person.html(f"{done}/steps")
    step = await person.text(f"{done}/steps/3")
    assert "incident count 3" in step
    assert "[step 1]" in (await person.text(f"{done}/steps/2")).replace("[ ", "[").replace(
        " ]", "]"
    )


async def test_a_long_ledger_is_turned_page_by_page(api, person, done):
    await note(api, done, *(ask(number) for number in range(3, 251)))
    first = await person.html(f"{done}/steps?run=1")
    following = first.partition('rel="next" href="')[2].partition('"')[0].replace("&amp;", "&")
    second = await person.html(following)
    assert f'href="{done}/steps/200"' in first
    assert f'href="{done}/steps/250"' in second
    assert f'href="{done}/steps/200"' not in second
    assert 'rel="next"' not in second


async def test_an_answer_nested_ever_deeper_is_still_shown(api, person, done):
    nested = "[" * 200 + "1" + "]" * 200
    await note(
        api, done, ask(3, answer=f'{{"raw": {nested}, "empty": [], "many": [{"7," * 300}7]}}')
    )
    text = await person.text(f"{done}/steps/3")
    assert "201 more are not shown." in text


@pytest.mark.parametrize("session_id", ["x", "ses_x", "ses_01KAJE0M5Y7R3S9T2V4W6X8Z1A", "%00"])
async def test_what_is_no_investigation_is_a_page_that_says_so(person, done, session_id):
    for page in (f"{LIST}/{session_id}", f"{LIST}/{session_id}/steps", f"{done}/steps/99"):
        assert "Not Found" in await person.text(page, 404)


async def test_the_link_of_a_completed_run_opens_its_investigation(api, person, clock):
    office = Office(api.services.database, clock)
    schedule = await office.make("nightly")
    await office.fire(hours=1)
    await office.complete()
    await set_sessions(api, progress={"phase": "report", "steps": 1, "asked": 1})
    await person.sign_in()
    data = await api.services.database.read(lambda c: c.scalar(select(events.c.data)))
    html = await person.html(URL(data["url"]).path)
    assert "it was nothing" in html
    assert f'href="/schedules/{schedule.id}"' in html

"""`tocsin investigations`, as an operator sees it."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest
from sqlalchemy import Connection, select, update

from incident_rows import add_incidents
from session_rows import add_session
from tocsin.investigations import find_session
from tocsin.node import ServiceNode, open_node
from tocsin.settings import Settings
from tocsin.store.tables import audit, session_steps, sessions

ATTACKER = ("ip", "45.12.0.9")


@pytest.fixture(autouse=True)
def plugins_file(tmp_path: Path) -> None:
    (tmp_path / "plugins.toml").write_text("")


@pytest.fixture
def investigate(tmp_path: Path) -> Callable[[], None]:
    """Have a node investigate until a session has ended."""

    async def run() -> None:
        settings = Settings(data_dir=tmp_path / "data", plugins_file=tmp_path / "plugins.toml")
        async with open_node(settings) as node, asyncio.timeout(30):
            assert node.workers.investigations.worker is not None
            loop = asyncio.create_task(node.workers.investigations.worker.run())
            while not await has_ended(node):  # noqa: ASYNC110 - rows are what tells
                await asyncio.sleep(0.02)
            loop.cancel()
            await asyncio.wait([loop])

    return lambda: asyncio.run(run())


async def has_ended(node: ServiceNode) -> bool:
    ended = select(sessions.c.id).where(sessions.c.completed_at.is_not(None))
    return await node.database.read(lambda connection: connection.scalar(ended)) is not None


def audited(connection: Connection) -> list[tuple[str, str]]:
    return [tuple(row) for row in connection.execute(select(audit.c.action, audit.c.target))]


def status_of(connection: Connection, session_id: str) -> str:
    session = find_session(connection, session_id, public_url="")
    assert session is not None
    return session["status"]


def test_what_is_waited_for_is_printed_when_it_has_ended(tocsin, on_database, investigate):
    on_database(add_incidents, entities=[ATTACKER])
    node = Thread(target=investigate)
    node.start()
    status, out, errors = tocsin("investigations", "start", "incident 1")
    node.join()
    assert (status, errors) == (0, "")
    assert out.startswith("# Investigation of incident 1: Incident 1\n")


def test_a_session_is_begun_followed_replayed_and_shown(tocsin, on_database, investigate):
    on_database(add_incidents, entities=[ATTACKER])
    session_id = tocsin("investigations", "start", "incident 1", "--detach")[1].strip()
    investigate()
    assert tocsin("investigations", "replay", session_id) == (0, "identical\n", "")
    asked = ("investigations", "message", session_id, "why is the score so?", "--detach", "--json")
    session = json.loads(tocsin(*asked)[1])
    assert (session["id"], session["status"], session["run"]) == (session_id, "queued", 2)
    investigate()
    assert tocsin("investigations", "replay", session_id) == (0, "identical\n", "")
    target = f"session:{session_id}"
    assert on_database(audited) == [
        ("investigation.start", target),
        ("session.message", target),
    ]
    steps = json.loads(tocsin("investigations", "steps", session_id, "--json")[1])
    assert [step["number"] for step in steps] == list(range(1, len(steps) + 1))
    assert {step["run"] for step in steps} == {1, 2}


def test_a_replay_needs_no_secret_of_others(tocsin, tmp_path, on_database, investigate):
    on_database(add_incidents, entities=[ATTACKER])
    session_id = tocsin("investigations", "start", "incident 1", "--detach")[1].strip()
    investigate()
    (tmp_path / "plugins.toml").write_text(
        'enabled = ["abuseipdb"]\n[enrichers.abuseipdb]\nplugin = "abuseipdb"\n'
        'api_key = { env = "NOT_NEEDED_HERE" }\n'
    )
    assert tocsin("investigations", "replay", session_id) == (0, "identical\n", "")


def test_a_ledger_that_was_changed_is_noticed(tocsin, on_database, investigate):
    on_database(add_incidents, entities=[ATTACKER])
    session_id = tocsin("investigations", "start", "incident 1", "--detach")[1].strip()
    investigate()
    changed = update(session_steps).where(session_steps.c.conclusion.is_not(None))
    on_database(lambda connection: connection.execute(changed.values(conclusion="Nothing.")))
    status, out, _ = tocsin("investigations", "replay", session_id)
    assert status == 1
    assert re.match(r"run 1: step:\d+ is not the same conclusion", out)


def test_why_an_investigation_has_failed_is_said(tocsin, on_database, investigate):
    on_database(add_incidents)
    node = Thread(target=investigate)
    node.start()
    status, out, errors = tocsin("investigations", "start", "incident 999")
    node.join()
    assert (status, out) == (1, "")
    assert errors.startswith("failed: ")
    assert "999" in errors
    [line] = tocsin("investigations", "list", "--status", "failed")[1].splitlines()
    assert "999" in line


@pytest.mark.parametrize(
    ("form", "beginning"),
    [("markdown", "# "), ("html", "<!doctype html>"), ("json", "{\n"), ("text", "")],
)
def test_a_report_is_written_in_every_form(tocsin, on_database, form, beginning):
    session_id = on_database(add_session)
    status, out, _ = tocsin("investigations", "report", session_id, "--format", form)
    assert (status, out.startswith(beginning), "203.0.113.9" in out) == (0, True, True)


def test_sessions_and_steps_are_listed_as_lines(tocsin, on_database):
    session_id = on_database(add_session)
    [line] = tocsin("investigations", "list")[1].splitlines()
    assert line.split("\t")[:4] == [session_id, "completed", "analyst", ""]
    assert tocsin("investigations", "list", "--status", "running") == (0, "", "")
    lines = [
        line.split("\t") for line in tocsin("investigations", "steps", session_id)[1].splitlines()
    ]
    assert [line[:5] for line in lines] == [
        ["1", "1", "gather", "incidents-numbered", "incidents"],
        ["2", "1", "score", "conclusion", ""],
    ]


def test_a_session_that_waits_is_cancelled_once(tocsin, on_database):
    on_database(add_incidents)
    session_id = tocsin("investigations", "start", "incident 1", "--detach")[1].strip()
    for _ in range(2):
        assert tocsin("investigations", "cancel", session_id) == (0, "", "")
    assert on_database(status_of, session_id) == "cancelled"
    assert [action for action, _ in on_database(audited)] == [
        "investigation.start",
        "session.cancel",
    ]


def test_a_message_to_a_session_under_way_is_refused(tocsin, on_database):
    on_database(add_incidents)
    session_id = tocsin("investigations", "start", "incident 1", "--detach")[1].strip()
    status, out, errors = tocsin("investigations", "message", session_id, "go deeper")
    assert (status, out, "queued" in errors) == (2, "", True)


@pytest.mark.parametrize(
    "arguments",
    [
        ("message", "ses_0", "go deeper"),
        ("cancel", "ses_0"),
        ("report", "ses_0"),
        ("steps", "ses_0"),
        ("replay", "ses_0"),
    ],
)
def test_a_session_that_there_is_not_is_said(tocsin, on_database, arguments):
    status, out, errors = tocsin("investigations", *arguments)
    assert (status, out) == (2, "")
    assert "'ses_0'" in errors
    assert "Traceback" not in errors


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("start", " "), "QUESTION: found empty text"),
        (("start", "x" * 20_001), "use at most 20,000"),
        (("message", "ses_0", ""), "MESSAGE: found empty text"),
        (("start", "x", "--provider", "edge"), "found 'edge'; configure a provider first"),
    ],
)
def test_what_cannot_be_investigated_is_said_at_once(tocsin, on_database, arguments, reason):
    status, out, errors = tocsin("investigations", *arguments)
    assert (status, out, reason in errors) == (2, "", True)


def test_nothing_is_made_where_there_is_no_database(tocsin, tmp_path):
    status, _, errors = tocsin("investigations", "start", "incident 1")
    assert (status, "no database at" in errors) == (2, True)
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (
            ["start", "x", "--persona", "boss"],
            "'--persona': found 'boss'; use one of: "
            "analyst, threat-hunter, incident-responder, executive\n",
        ),
        (["start", "x", "--persona", "executiv"], "executive; did you mean 'executive'?"),
        (["list", "--status", "done"], "'--status': found 'done'; use one of: queued, running"),
        (["report", "ses_1", "--format", "pdf"], "use one of: markdown, html, json, text"),
    ],
)
def test_a_word_that_is_none_of_those_known_is_answered_with_them(tocsin, command, words):
    status, out, errors = tocsin("investigations", *command)
    assert (status, out) == (2, "")
    assert words in " ".join(errors.split(" "))
    assert "Value error" not in errors

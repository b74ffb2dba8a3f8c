"""`tocsin search`, as an operator sees it."""

from __future__ import annotations

import json

import pytest

from incident_rows import add_incidents
from session_rows import add_session
from tocsin.investigations.sessions.repository import index_session
from tocsin.knowledge.search.indexer import index_batch


@pytest.fixture
def history(on_database):
    """Two incidents and a session, all of which can be searched for."""
    on_database(add_incidents, title="Beacon to a server", entities=[("ip", "203.0.113.9")])
    on_database(add_incidents, title="Brute force", entities=[("ip", "203.0.113.10")])
    session_id = on_database(add_session)
    on_database(index_batch)
    on_database(index_session, session_id)
    return session_id


def test_what_fits_is_printed_a_line_each(tocsin, history):
    status, out, _ = tocsin("search", "beacon")
    lines = [line.split("\t") for line in out.splitlines()]
    assert (status, [line[:3] for line in lines]) == (
        0,
        [["incident", "1", "2026-11-21T12:00:00.000Z"]],
    )
    assert lines[0][4] == "Beacon to a server"


def test_incidents_and_sessions_are_found_by_what_they_name(tocsin, history):
    found = json.loads(tocsin("search", "203.0.113.9", "--json")[1])
    assert {(hit["kind"], hit["id"]) for hit in found} == {("incident", "1"), ("session", history)}
    assert all("<" not in hit["snippet"] for hit in found)
    assert len(json.loads(tocsin("search", "203.0.113.9", "--json", "--limit", "1")[1])) == 1


def test_entities_are_looked_up_by_the_beginning_of_their_value(tocsin, history):
    found = json.loads(tocsin("search", "203.0.113", "--entities", "--json")[1])
    assert [(hit["kind"], hit["value"], hit["incident_count"]) for hit in found] == [
        ("ip", "203.0.113.10", 1),
        ("ip", "203.0.113.9", 1),
    ]


def test_nothing_is_printed_where_nothing_fits(tocsin, history):
    assert tocsin("search", "unheard-of") == (0, "", "")


def test_what_is_no_query_is_said(tocsin, history):
    status, out, errors = tocsin("search", "severity:enormous")
    assert (status, out, "Traceback" in errors) == (2, "", False)
    assert "severity" in errors

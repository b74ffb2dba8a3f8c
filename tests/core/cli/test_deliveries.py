"""`tocsin deliveries`, as an operator sees it."""

from __future__ import annotations

import json

import pytest
from sqlalchemy import select

from delivery_rows import add_delivery, add_destination, add_event, rows
from tocsin.store.tables import audit


def audited(connection) -> list[tuple[str, str]]:
    return [tuple(row) for row in connection.execute(select(audit.c.action, audit.c.target))]


def test_deliveries_are_listed_as_lines_or_json(tocsin, on_database):
    on_database(add_destination)
    id_ = on_database(add_delivery, reason="503: busy")
    on_database(add_delivery, "pending", to="other")
    choose = ["--state", "Dead", "--event", "incident-alert", "--subject", "incident:1"]
    choose += ["--destination", "soc", "--since", "2026-11-21T12:00:00Z"]
    status, out, _ = tocsin("deliveries", "list", *choose)
    line = [id_, "soc", "incident-alert", "incident:1", "dead", "1", ""]
    assert (status, out.splitlines()) == (
        0,
        ["\t".join([*line, "2026-11-21T12:00:00.000Z", "503: busy"])],
    )
    [record] = json.loads(tocsin("deliveries", "list", "--json", *choose)[1])
    assert record["id"] == id_


def test_a_delivery_that_was_never_tried_has_no_attempts_to_show(tocsin, on_database):
    id_ = on_database(add_delivery, "pending", tried=0)
    assert tocsin("deliveries", "show", id_) == (0, "", "")


def test_one_is_sent_again_and_that_is_in_the_audit_log(tocsin, on_database):
    id_ = on_database(add_delivery)
    assert tocsin("deliveries", "replay", id_) == (0, "1\n", "")
    assert on_database(rows)[id_]["state"] == "pending"
    assert on_database(audited) == [("delivery.replay", f"delivery:{id_}")]


def test_why_one_cannot_be_sent_again_is_said(tocsin, on_database):
    on_database(add_destination, "soc", "deleted")
    id_ = on_database(add_delivery)
    status, out, errors = tocsin("deliveries", "replay", id_)
    assert (status, out) == (2, "")
    assert "its destination soc was deleted" in errors


def test_all_that_match_are_sent_again(tocsin, on_database):
    on_database(add_destination)
    for state in ("dead", "dead", "delivered", "pending"):
        on_database(add_delivery, state)
        on_database(add_delivery, state, to="other")
    chosen = ["--destination", "soc", "--since", "2026-11-21T12:00:00Z"]
    assert tocsin("deliveries", "replay", *chosen) == (0, "2\n", "")
    assert tocsin("deliveries", "replay", "--state", "delivered") == (0, "2\n", "")
    assert tocsin("deliveries", "replay") == (0, "2\n", "")
    assert tocsin("deliveries", "replay") == (0, "0\n", "")
    assert {action for action, _ in on_database(audited)} == {"deliveries.replay"}
    assert {row["state"] for row in on_database(rows).values()} == {"pending"}


def test_events_of_nobody_are_routed_again_and_that_is_in_the_audit_log(tocsin, on_database):
    period = ["--since", "2026-11-21T12:00:00Z", "--until", "2026-11-21T12:00:01Z"]
    on_database(add_event)
    on_database(add_delivery)
    assert tocsin("deliveries", "reroute", *period, "--dry-run") == (0, "1\n", "")
    assert on_database(audited) == []
    assert tocsin("deliveries", "reroute", *period) == (0, "1\n", "")
    assert tocsin("deliveries", "reroute", *period) == (0, "0\n", "")  # it waits to be routed
    assert [action for action, _ in on_database(audited)] == ["events.reroute"] * 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["list", "--state", "lost"], "--state: found 'lost'; use one of: pending, on_hold"),
        (["list", "--event", "x"], "--event: found 'x'; use one of: incident-alert"),
        (
            ["list", "--since", "soon"],
            "--since: found 'soon'; use a duration to count back from now",
        ),
        (
            ["replay", "--until", "2026-11-21"],
            "--until: found '2026-11-21'; use a duration to count back from now",
        ),
        (["replay", "--state", "pending"], "--state: found 'pending'; use one of: dead"),
        (
            ["replay", "dlv_1", "--since", "1h"],
            "use either the ID of a delivery or filter options",
        ),
        (["replay", "dlv_1"], "no delivery with ID 'dlv_1'"),
        (["show", "dlv_1"], "no delivery with ID 'dlv_1'"),
        (
            ["replay", "--destination", "soca"],
            "--destination: there is no destination 'soca'; did you mean 'soc'?",
        ),
    ],
)
def test_what_is_wrong_is_said(tocsin, on_database, arguments, words):
    on_database(add_destination)
    status, out, errors = tocsin("deliveries", *arguments)
    assert (status, out) == (2, "")
    assert words in errors

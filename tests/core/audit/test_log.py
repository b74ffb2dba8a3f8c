"""Entries come back as they went in, and nothing takes them away."""

from __future__ import annotations

import json

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from full_run import scale_examples
from tocsin.audit import AuditPage, list_entries, record
from tocsin.audit.log import clean_details

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([-0.0, 1e16, 1e18, -(2.0**63), 1.844674407370955e19, 2.0**64, 1e300])
    | st.text(st.characters(codec=None)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def actions(page: AuditPage) -> list[str]:
    return [entry["action"] for entry in page.entries]


async def test_an_entry_comes_back_as_it_was_recorded(database, add):
    details = {"name": "ci", "scopes": ["incidents:read"], "expires": None}
    await add("api-key.create", target="key", details=details, count=3)
    page = await database.read(list_entries, limit=10)
    assert orjson.loads(orjson.dumps(page.entries)) == [
        {
            "id": 1,
            "at": "2026-11-21T12:00:00.000Z",
            "actor": "ann",
            "action": "api-key.create",
            "target": "key",
            "address": "192.0.2.1",
            "request_id": "r1",
            "count": 3,
            "details": details,
            "position": None,
            "seal": None,
        }
    ]


async def test_pages_follow_each_other_from_the_newest(database, add):
    await add(*"abcde")
    first = await database.read(list_entries, limit=3)
    second = await database.read(list_entries, limit=3, before=first.next)
    assert (actions(first), actions(second)) == (["e", "d", "c"], ["b", "a"])
    assert second.next is None
    assert (first.total, second.total, first.exact) == (5, 5, True)


async def test_a_page_that_is_just_full_is_the_last(database, add):
    await add(*"abc")
    assert (await database.read(list_entries, limit=3)).next is None


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({}, ["c", "b", "a"]),
        ({"action": "b"}, ["b"]),
        ({"actor": "bob"}, ["c", "b"]),
        ({"target": "key"}, ["c"]),
        ({"actor": "bob", "action": "a"}, []),
    ],
)
async def test_filters_narrow_the_list_and_its_total(database, add, wanted, found):
    await add("a")
    await add("b", actor="bob")
    await add("c", actor="bob", target="key")
    page = await database.read(list_entries, limit=10, **wanted)
    assert (actions(page), page.total) == (found, len(found))


async def test_totals_are_exact_up_to_ten_thousand(database, add):
    await add(*["a"] * 10_000)
    page = await database.read(list_entries, limit=1)
    assert (page.total, page.exact) == (10_000, True)
    await add("a")
    page = await database.read(list_entries, limit=1)
    assert (page.total, page.exact) == (10_000, False)


async def test_nothing_remains_of_an_entry_whose_transaction_rolls_back(database, make_entry):
    def record_and_fail(connection: Connection) -> None:
        record(connection, make_entry())
        raise ValueError

    with pytest.raises(ValueError):
        await database.write(record_and_fail)
    assert (await database.read(list_entries, limit=10)).total == 0


async def test_texts_are_bounded_and_held_by_both_databases(database, add):
    long = "\0\udcff" + "é" * 5000
    changes = dict.fromkeys(("actor", "target", "address", "request_id"), long)
    await add(long, **changes, details={"name": [long]})
    [entry] = (await database.read(list_entries, limit=1)).entries
    lengths = {name: len(entry[name]) for name in ("action", *changes)}
    assert lengths == {
        "action": 60,
        "actor": 500,
        "target": 500,
        "address": 60,
        "request_id": 128,
    }
    assert len(entry["details"]["name"][0]) == 2000
    assert entry["actor"].startswith("\N{REPLACEMENT CHARACTER}?é")
    assert entry["actor"].endswith("é…")


@settings(
    max_examples=scale_examples(50), suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(details=st.dictionaries(st.text(), JSON, max_size=3))
async def test_any_details_come_back_alike_from_both_databases(database, add, details):
    await add("any", details=details)
    [entry] = (await database.read(list_entries, limit=1)).entries
    stored = json.dumps(clean_details(details), sort_keys=True)
    assert json.dumps(entry["details"], sort_keys=True) == stored


def test_numbers_keep_their_value():
    numbers = [-0.0, 0.1, 3.0, 1e16, -(2.0**63), 2.0**64, 1e300, 5e-324, True]
    assert clean_details({"numbers": numbers}) == {"numbers": numbers}


@pytest.mark.parametrize(
    ("sealed", "statement"),
    [
        (False, "DELETE FROM audit"),
        (True, "DELETE FROM audit"),
        (True, "UPDATE audit SET actor = 'bob'"),
        (True, "UPDATE audit SET position = NULL, seal = NULL"),
    ],
)
async def test_the_database_refuses_to_take_an_entry_away(database, add, sealer, sealed, statement):
    await add("a")
    if sealed:
        await sealer.seal()
    before = await database.read(list_entries, limit=10)
    with pytest.raises(DBAPIError, match="append-only"):
        await database.write(lambda connection: connection.execute(text(statement)).close())
    assert await database.read(list_entries, limit=10) == before


FORGED = {
    "details that are no object": ("details", "'[5]'", {"details": {"unreadable": "[5]"}}),
    "a moment out of range": ("at", "9000000000000000000", {"at": "1970-01-01T00:00:00.000Z"}),
}
FORGED_ON_SQLITE = {
    "details that are no JSON": ("details", "'{'", {"details": {"unreadable": "{"}}),
    "details that are bytes": ("details", "x'7bff'", {"details": {"unreadable": "{?"}}),
    "a moment that is text": ("at", "'x'", {"at": "1970-01-01T00:00:00.000Z"}),
    "an actor of bytes": ("actor", "x'61ff'", {"actor": "a\N{REPLACEMENT CHARACTER}"}),
    "an actor that is not UTF-8": ("actor", "CAST(x'61ff' AS TEXT)", {"actor": "a?"}),
}


async def list_forged(add, tamper, database, column: str, value: str) -> dict:
    await add("a")
    await tamper(f"UPDATE audit SET {column} = {value}")
    page = await database.read(list_entries, limit=10)
    [entry] = orjson.loads(orjson.dumps({"entries": page.entries}))["entries"]
    return entry


@pytest.mark.parametrize("forged", FORGED.values(), ids=FORGED)
async def test_a_forged_row_is_listed(add, tamper, database, forged):
    column, value, shown = forged
    entry = await list_forged(add, tamper, database, column, value)
    assert entry | shown == entry


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("forged", FORGED_ON_SQLITE.values(), ids=FORGED_ON_SQLITE)
async def test_what_only_sqlite_holds_is_listed(add, tamper, database, forged):
    column, value, shown = forged
    entry = await list_forged(add, tamper, database, column, value)
    assert entry | shown == entry


@pytest.mark.parametrize("depth", [252, 255, 1020, 1500])
async def test_details_too_deep_for_an_answer_are_listed_cut(add, tamper, database, depth):
    deep = '{"a":' + "[" * depth + "]" * depth + "}"
    entry = await list_forged(add, tamper, database, "details", f"'{deep}'")
    [(name, text)] = entry["details"].items()
    assert name == "unreadable"
    assert "[[[" in text
    assert len(text) <= 2000

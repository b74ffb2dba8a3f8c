"""Each committed entry is sealed once, in a chain that verifies."""

from __future__ import annotations

import asyncio

import pytest
import structlog
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import insert, select, text

from full_run import scale_examples
from tocsin.audit import Sealer, list_entries, record
from tocsin.store import open_database
from tocsin.store.tables import audit

# Written once and kept: what is sealed today must still verify tomorrow, on either database.
KEPT = "52b93e67a2214bd0e1ae25460ddd717947c0ae643844430ac1fea4869db17acd"

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(codec=None)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


async def chained(database) -> list[tuple[str, int]]:
    query = select(audit.c.action, audit.c.position).order_by(audit.c.position)
    return await database.read(lambda connection: [tuple(row) for row in connection.execute(query)])


async def test_what_is_sealed_verifies_and_is_sealed_once(database, add, sealer, check):
    await add(*"abc")
    assert (await check()).unsealed == 3
    assert (await sealer.seal(), await sealer.seal()) == (3, 0)
    await add("d")
    assert await sealer.seal() == 1
    found = await check()
    assert (found.entries, found.unsealed, found.head_position, found.problems) == (4, 0, 4, [])
    assert await chained(database) == [("a", 1), ("b", 2), ("c", 3), ("d", 4)]


async def test_an_empty_log_has_no_head_and_no_problems(sealer, check):
    assert await sealer.seal() == 0
    found = await check()
    assert (found.entries, found.head_position, found.head_seal, found.problems) == (
        0,
        None,
        None,
        [],
    )


async def test_what_waits_is_sealed_in_batches_until_none_is_left(add, sealer, check):
    await add(*["a"] * 1001)
    with structlog.testing.capture_logs() as logs:
        assert await sealer.seal() == 1001
    assert [line["position"] for line in logs] == [500, 1000, 1001]
    assert (await check()).problems == []


async def test_the_head_is_witnessed_in_the_log(add, sealer, check):
    await add(*"abc")
    with structlog.testing.capture_logs() as logs:
        await sealer.seal()
        await sealer.seal()
    found = await check()
    assert logs == [
        {
            "event": "audit sealed",
            "log_level": "info",
            "position": found.head_position,
            "seal": found.head_seal,
        }
    ]


async def test_a_seal_stays_what_it_was(database, add, sealer):
    details = {"ü": [1e16, -0.0, 0.1, 1e300, 2**64 - 1, True, None], "a": {"z": "\0", "b": "é\n"}}
    await add("api-key.create", target="key", details=details)
    await add("api-key.disable")
    await sealer.seal()
    newest = (await database.read(list_entries, limit=1)).entries[0]
    assert newest["seal"] == KEPT


async def test_entries_that_commit_out_of_order_are_chained_as_they_commit(
    database, add, make_entry, sealer, check
):
    if hasattr(database, "_reading"):  # PostgreSQL: the lower id is taken, and commits last
        async with database._engine.begin() as slow:
            await slow.run_sync(record, make_entry("slow"))
            await add("fast")
            assert await sealer.seal() == 1
    else:  # SQLite has one writer, so the lower id is given
        values = {"address": "", "request_id": "", "count": 1, "details": {}, "actor": ""}
        row = {**values, "id": 7, "at": make_entry().at, "action": "fast"}
        await database.write(lambda c: c.execute(insert(audit).values(row)).close())
        assert await sealer.seal() == 1
        row |= {"id": 3, "action": "slow"}
        await database.write(lambda c: c.execute(insert(audit).values(row)).close())
    assert await sealer.seal() == 1
    newest = await database.read(list_entries, limit=2)
    assert [entry["action"] for entry in newest.entries] == ["fast", "slow"]
    assert await chained(database) == [("fast", 1), ("slow", 2)]
    assert (await check()).problems == []


async def test_two_nodes_at_once_seal_each_entry_once(database_url, add, sealer, check, clock):
    await add(*["a"] * 1200)
    second = open_database(database_url)
    counts = await asyncio.gather(sealer.seal(), Sealer(second, b"k" * 32, clock).seal())
    await second.close()
    assert sum(counts) == 1200
    found = await check()
    assert (found.entries, found.head_position, found.problems) == (1200, 1200, [])


async def test_entries_are_sealed_while_others_are_recorded(add, sealer, check):
    async def busy() -> None:
        for _ in range(20):
            await add(*"abc")

    async def sealing() -> None:
        for _ in range(20):
            await sealer.seal()
            assert (await check()).problems == []

    await asyncio.gather(busy(), sealing())
    await sealer.seal()
    found = await check()
    assert (found.entries, found.unsealed, found.problems) == (60, 0, [])


async def test_a_running_sealer_seals_what_comes(add, sealer, check, running):
    async with running(sealer.run()):
        for expected in (1, 2):
            await add("a")
            while (await check()).entries < expected:
                pass


@settings(
    max_examples=scale_examples(50), suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    entries=st.lists(
        st.builds(
            dict,
            action=st.text(),
            actor=st.text(st.characters(codec=None)),
            target=st.none() | st.text(),
            count=st.integers(0, 2**31 - 1),
            details=st.dictionaries(st.text(), JSON, max_size=3),
        ),
        max_size=5,
    )
)
async def test_any_entries_are_sealed_and_verify(database, make_entry, sealer, check, entries):
    await database.write(record, *(make_entry(**entry) for entry in entries))
    assert await sealer.seal() == len(entries)
    assert (await check()).problems == []


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
async def test_what_is_not_committed_is_not_sealed(database, add, make_entry, sealer):
    async with database._engine.begin() as open_transaction:
        await open_transaction.run_sync(record, make_entry())
        assert await sealer.seal() == 0
    assert await sealer.seal() == 1


UNREADABLE = {
    "too deep to parse": ("details", f"'{'[' * 1500 + ']' * 1500}'"),
    "too deep to write": ("details", f"'{'[' * 1020 + ']' * 1020}'"),
    "too large a number": ("details", f"'{'9' * 400}'"),
}
UNREADABLE_ON_SQLITE = {
    "no JSON": ("details", "'{'"),
    "details of bytes": ("details", "x'ff'"),
    "a moment that is text": ("at", "'x'"),
    "bytes": ("actor", "x'ff'"),
    "no UTF-8": ("actor", "CAST(x'ff' AS TEXT)"),
}


@pytest.fixture
def forge(database):
    """Insert an entry as whoever writes to the database can, with a column of his choice."""

    async def forge(column: str, value: str) -> None:
        values = dict.fromkeys(("actor", "action", "address", "request_id"), "''")
        values |= {"at": "1", "count": "1", "details": "'{}'", column: value}
        statement = text(
            f"INSERT INTO audit ({', '.join(values)}) VALUES ({', '.join(values.values())})"
        )
        await database.write(lambda connection: connection.execute(statement).close())

    return forge


@pytest.fixture
def seal_around(forge, add, sealer, check):
    async def seal_around(column: str, value: str) -> None:
        await add("before")
        await forge(column, value)
        await add("after")
        assert await sealer.seal() == 3
        found = await check()
        assert (found.entries, found.unsealed, found.problems) == (3, 0, [])

    return seal_around


@pytest.mark.parametrize(("column", "value"), UNREADABLE.values(), ids=UNREADABLE)
async def test_a_row_that_cannot_be_read_is_sealed_too(seal_around, column, value):
    await seal_around(column, value)


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("column", "value"), UNREADABLE_ON_SQLITE.values(), ids=UNREADABLE_ON_SQLITE
)
async def test_what_only_sqlite_holds_is_sealed_too(seal_around, column, value):
    await seal_around(column, value)


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_what_cannot_be_read_is_sealed_unlike_the_same_text(forge, tamper, sealer, check):
    await forge("details", "'{'")
    await sealer.seal()
    await tamper("""UPDATE audit SET details = '"{"'""")
    [problem] = (await check()).problems
    assert "the seal does not match" in problem


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("seal", ["x'ff'", "CAST(x'ff' AS TEXT)", "5"])
async def test_sealing_goes_on_after_a_seal_that_is_none(add, tamper, sealer, seal):
    await add("a")
    await sealer.seal()
    await tamper(f"UPDATE audit SET seal = {seal}")
    await add("b")
    assert await sealer.seal() == 1


@pytest.mark.parametrize(
    "broken",
    [
        ("DELETE FROM sequences", "is missing"),
        ("UPDATE sequences SET value = 0 WHERE name = 'audit_position'", "is behind the sealed"),
    ],
)
async def test_a_broken_sequence_is_reported_once_an_hour(
    database_url, database, clock, add, broken
):
    change, reason = broken
    await add("a")
    await Sealer(database, b"key", clock).seal()
    await add("b")
    database = open_database(database_url)  # which has seen no number yet
    await database.write(lambda connection: connection.execute(text(change)))
    sealer = Sealer(database, b"key", clock)
    with structlog.testing.capture_logs() as logs:
        for hours in (0, 0, 1, 0):
            clock.advance(hours=hours)
            await sealer._step()
    assert [line["event"] for line in logs] == ["audit log not sealed"] * 2
    assert "audit_position" in logs[0]["reason"]
    assert reason in logs[0]["reason"]
    await database.close()

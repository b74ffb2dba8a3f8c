"""What is old and done with is removed, and nothing else; what is archived can be read."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import event, insert, select

from delivery_rows import NOW, add_delivery, add_event, rows
from tocsin.delivery.history import retention
from tocsin.delivery.history.replay_runner import replay_delivery
from tocsin.delivery.history.retention import remove_events
from tocsin.retention import Retention, RetentionRule
from tocsin.store import Archive, open_database
from tocsin.store.tables import attempts, events, remote_objects

KEEP = timedelta(days=40)
OLD = NOW - timedelta(days=41)


async def remove_old(database, clock, archive: Archive | None = None) -> int:
    rule = RetentionRule("events", KEEP, remove_events)
    return await Retention(database, clock, [rule], archive).remove_old()


async def ids(database, table) -> set[str]:
    return set(await database.read(lambda c: c.scalars(select(table.c[0])).all()))


def lines(folder: Path) -> dict[str, list[dict]]:
    """Return what the archive holds, by file."""
    return {
        path.name: [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
        for path in sorted(folder.iterdir())
    }


async def test_an_old_event_goes_with_its_deliveries_and_attempts(database, clock):
    def add(connection):
        about = add_event(connection, at=OLD)
        add_delivery(connection, "dead", event=about, tried=3)
        add_delivery(connection, "delivered", event=about, to="other")
        add_event(connection, at=OLD)  # which concerned nobody

    await database.write(add)
    assert await remove_old(database, clock) == 2
    for table in (events, attempts):
        assert await ids(database, table) == set()
    assert await database.read(rows) == {}


@pytest.mark.parametrize("state", ["pending", "on_hold"])
async def test_an_event_of_which_anything_waits_is_kept_whole(database, clock, state):
    def add(connection):
        about = add_event(connection, at=OLD)
        return {
            add_delivery(connection, name, event=about, to=name) for name in (state, "delivered")
        }

    made = await database.write(add)
    assert await remove_old(database, clock) == 0
    assert set(await database.read(rows)) == made


async def test_what_is_young_or_not_routed_is_kept(database, clock):
    await database.write(add_delivery, at=NOW - KEEP)
    unrouted = await database.write(add_event, at=OLD, routed=False)
    assert await remove_old(database, clock) == 0
    assert unrouted in await ids(database, events)
    clock.advance(seconds=1)
    assert await remove_old(database, clock) == 1


async def test_remote_objects_stay_for_later_events_to_update(database, clock):
    row = {
        "destination": "soc",
        "subject": "incident:1",
        "remote_id": "7",
        "home": "",
        "event_id": "",
        "updated_at": OLD,
    }
    await database.write(lambda c: c.execute(insert(remote_objects).values(row)) and None)
    await database.write(add_delivery, at=OLD)
    assert await remove_old(database, clock) == 1
    assert await ids(database, remote_objects) == {"soc"}


async def test_more_than_a_batch_goes_too_and_what_stays_is_not_in_its_way(
    database, clock, monkeypatch
):
    monkeypatch.setattr(retention, "BATCH", 3)

    def add(connection):
        for number in range(8):
            add_delivery(connection, at=OLD + timedelta(minutes=number))
            add_delivery(connection, "on_hold", at=OLD + timedelta(minutes=number))

    await database.write(add)
    assert await remove_old(database, clock) == 8
    assert len(await ids(database, events)) == 8


async def test_an_archived_event_is_a_line_in_the_file_of_its_day(database, clock, tmp_path):
    async def add(at):
        return await database.write(add_delivery, at=at, number=7, remote_id="T-1")

    first, second = await add(OLD), await add(OLD - timedelta(days=1))
    folder = tmp_path / "archive"
    assert await remove_old(database, clock, Archive(folder)) == 2
    found = lines(folder)
    assert list(found) == ["deliveries-2026-10-10.jsonl.gz", "deliveries-2026-10-11.jsonl.gz"]
    [[earlier], [line]] = found.values()
    assert earlier["deliveries"][0]["id"] == second
    assert line["subject"] == "incident:7"
    assert line["timestamp"] == "2026-10-11T12:00:00.000Z"
    [delivery] = line["deliveries"]
    assert (delivery["id"], delivery["state"], delivery["remote_id"]) == (first, "dead", "T-1")
    assert [attempt["response"] for attempt in delivery["attempts"]] == ["busy \ufffd"]


async def test_an_archive_is_its_owners_alone(database, clock, tmp_path):
    await database.write(add_delivery, at=OLD)
    await remove_old(database, clock, Archive(tmp_path / "archive"))
    modes = [path.stat().st_mode & 0o777 for path in tmp_path.glob("archive/**/*")]
    assert modes == [0o600]


async def test_nothing_is_removed_that_cannot_be_archived(database, clock, tmp_path):
    await database.write(add_delivery, at=OLD)
    (tmp_path / "archive").write_text("a file where the folder should be")
    with pytest.raises(FileExistsError):
        await remove_old(database, clock, Archive(tmp_path / "archive"))
    assert len(await ids(database, events)) == 1


async def test_what_was_archived_but_not_removed_is_archived_again(database, clock, tmp_path):
    await database.write(add_delivery, at=OLD)

    def killed(connection):
        remove_events(connection, None, NOW, Archive(tmp_path / "archive"))
        raise KeyError

    with pytest.raises(KeyError):
        await database.write(killed)
    await remove_old(database, clock, Archive(tmp_path / "archive"))
    [[first, second]] = lines(tmp_path / "archive").values()
    assert first == second
    assert await ids(database, events) == set()


async def test_nodes_that_remove_together_archive_each_event_once(
    database, migrated_url, clock, tmp_path
):
    def add(connection):
        for _ in range(30):
            add_delivery(connection, at=OLD)

    await database.write(add)
    other = open_database(migrated_url)
    folder = tmp_path / "archive"
    removed = await asyncio.gather(
        *(remove_old(one, clock, Archive(folder)) for one in (database, other))
    )
    await other.close()
    assert sum(removed) == 30
    [found] = lines(folder).values()
    assert len(found) == len({line["id"] for line in found}) == 30


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
async def test_what_is_replayed_at_that_moment_is_kept(database, migrated_url, clock):
    id_ = await database.write(add_delivery, at=OLD)
    other, has_replayed, removing = open_database(migrated_url), asyncio.Event(), asyncio.Event()

    async def replay() -> None:
        async with other._engine.begin() as connection:
            await connection.run_sync(replay_delivery, id_, NOW)
            has_replayed.set()
            await removing.wait()
            await asyncio.sleep(0)

    replaying = asyncio.create_task(replay())
    await has_replayed.wait()
    removal = asyncio.create_task(remove_old(database, clock))
    blocked = "SELECT count(*) FROM pg_locks WHERE NOT granted"
    while not await other.read(lambda c: c.exec_driver_sql(blocked).scalar_one()):
        pass
    removing.set()
    assert await removal == 0
    await replaying
    await other.close()
    assert set(await database.read(rows)) == {id_}


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_batch_goes_by_time_and_by_event(database):
    def plan(connection) -> list[str]:
        ran = []

        def note(_connection, _cursor, statement, parameters, _context, _many):
            ran.append((statement, parameters))

        add_delivery(connection, at=OLD)
        event.listen(connection, "before_cursor_execute", note)
        remove_events(connection, None, NOW, None)
        event.remove(connection, "before_cursor_execute", note)
        return [
            row[3]
            for statement, parameters in ran
            for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
        ]

    steps = await database.write(plan)
    assert any("ix_events_timestamp (timestamp>? AND timestamp<?)" in step for step in steps)
    assert not [step for step in steps if step.startswith("SCAN")]


# The archive's files

TEXTS = st.lists(st.integers(0, 99), min_size=1, max_size=3)


@given(st.lists(TEXTS, min_size=1, max_size=4), TEXTS, st.data())
def test_a_line_torn_by_a_crash_hides_none_that_follow(tmp_path_factory, complete, torn, data):
    folder = tmp_path_factory.mktemp("archive")
    day, archive = NOW.date(), Archive(folder)
    for batch in complete:
        archive.add([(day, {"n": number}) for number in batch], "deliveries")
    [path] = folder.iterdir()
    size = path.stat().st_size
    archive.add([(day, {"n": number}) for number in torn], "deliveries")
    os.truncate(path, data.draw(st.integers(size, path.stat().st_size - 1)))
    Archive(folder).add([(day, {"n": "last"})], "deliveries")
    [found] = lines(folder).values()
    assert [line["n"] for line in found] == [n for batch in complete for n in batch] + ["last"]

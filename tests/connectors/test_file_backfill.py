"""Backfills from files."""

from __future__ import annotations

import asyncio
import gzip
import os
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from full_run import scale_examples
from tocsin import Refused, TryLater, Window
from tocsin_connectors.siem.suricata import Suricata

START = datetime(2024, 11, 20, 12, tzinfo=UTC)
"""When the record 0 happened; each later one a minute after the one before."""
EVER = Window(START, START + timedelta(days=30))


def minutes(begin: int, end: int) -> Window:
    """Return the window in which the records `begin` up to, not including, `end` happened."""
    return Window(START + timedelta(minutes=begin), START + timedelta(minutes=end))


def age(path: Path, moment: datetime) -> None:
    os.utime(path, (moment.timestamp(), moment.timestamp()))


def ids_of(pages):
    return [incident.external_id for page in pages for incident in page.incidents]


def windows_of(pages):
    """Return which of the window the pages account for."""
    return [(part.start, part.end) for page in pages for part in page.covered if not part.lost]


@pytest.fixture
def rotated(eve):
    return eve.with_name("eve.json.1")


@pytest.fixture
def fixed(make_feed, eve, clock):
    """A feed whose clock stands still."""
    return make_feed(eve, clock=clock)


async def test_only_records_of_the_window_are_read(feed, eve, write):
    write(eve, *range(10))
    assert ids_of(await feed.backfill(minutes(3, 6))) == ["3", "4", "5"]


async def test_rotated_and_compressed_files_are_read_from_the_start(
    feed, eve, rotated, write, compress
):
    write(older := eve.with_name("eve.json.2"), 1, 2)
    compress(older)
    write(rotated, 3, 4)
    write(eve, 5, 6)
    assert sorted(ids_of(await feed.backfill(minutes(2, 6)))) == ["2", "3", "4", "5"]


async def test_backfill_does_not_use_the_position_of_the_stream(feed, eve, write):
    write(eve, 1, 2)
    await feed.read()
    position = feed.position
    assert ids_of(await feed.backfill(EVER)) == ["1", "2"]
    assert await feed.read() == []
    assert feed.position == position


async def test_window_is_covered_by_the_last_page(feed, eve, write):
    write(eve, *range(1500))
    pages = await feed.backfill(EVER)
    begun = (START, START)
    assert windows_of(pages) == [begun, begun, (START, EVER.end)]
    assert {part.source for page in pages for part in page.covered} == {"changed"}
    assert [page.records for page in pages] == [1000, 500, 0]


async def test_empty_window_is_covered(feed, eve):
    eve.touch()
    assert windows_of(await feed.backfill(EVER))[-1] == (START, EVER.end)


@pytest.mark.parametrize("stops", [1, 2, 3])
async def test_backfill_resumes_after_any_page(feed, eve, rotated, write, stops):
    write(rotated, *range(1500))
    write(eve, *range(1500, 3000))
    pages = await feed.backfill(EVER, most=stops)
    pages += await feed.backfill(EVER)
    assert sorted(map(int, ids_of(pages))) == list(range(3000))


async def test_backfill_resumes_after_rotation_and_compression(feed, eve, rotated, write, compress):
    write(eve, *range(1500))
    pages = await feed.backfill(EVER, most=1)
    eve.rename(rotated)
    compress(rotated)
    write(eve, 1500)
    pages += await feed.backfill(EVER)
    assert ids_of(pages) == [str(number) for number in range(1501)]


async def test_file_last_written_before_the_window_is_not_opened(feed, eve, rotated, write):
    write(rotated, 1)
    age(rotated, START)
    write(eve, 2)
    window = Window(START + timedelta(hours=1), EVER.end)
    pages = await feed.backfill(window)
    assert [page.records for page in pages] == [1, 0]


async def test_record_can_be_slightly_newer_than_its_file(feed, eve, write):
    """Kernels note the times of files in steps, some file systems in whole seconds."""
    write(eve, 1)
    age(eve, START + timedelta(minutes=1, milliseconds=-900))
    assert ids_of(await feed.backfill(minutes(1, 2))) == ["1"]


async def test_invalid_records_are_quarantined_without_time(feed, eve, write):
    write(eve, 1)
    with eve.open("a") as file:
        file.write("{\n")
    write(eve, 2)
    (page, _) = await feed.backfill(minutes(2, 3))
    assert [rejected.location for rejected in page.rejected] == ["byte 8"]


async def test_replay_of_old_packets_keeps_its_times(feed, eve, write):
    """Their time is long before that of the file."""
    write(eve, 60, 1)
    assert ids_of(await feed.backfill(minutes(0, 2))) == ["1"]


async def test_window_is_not_covered_while_a_file_is_unreadable(
    feed, eve, rotated, write, no_access
):
    write(rotated, 1)
    write(eve, 2)
    restore = no_access(rotated)
    with pytest.raises(TryLater, match="Permission denied"):
        await feed.backfill(EVER)
    restore()
    pages = await feed.backfill(EVER)
    assert (ids_of(pages), windows_of(pages)[-1]) == (["1"], (START, EVER.end))


async def test_window_is_not_covered_while_a_file_is_missing(feed, eve, rotated, write):
    write(rotated, 1)
    with pytest.raises(TryLater, match="No such file"):
        await feed.backfill(EVER)
    eve.touch()
    assert windows_of(await feed.backfill(EVER))[-1] == (START, EVER.end)


async def test_file_being_compressed_is_waited_for(fixed, eve, rotated, write, clock):
    write(rotated, *range(500))
    whole = gzip.compress(rotated.read_bytes())
    compressed = eve.with_name("eve.json.1.gz")
    compressed.write_bytes(whole[: len(whole) // 2])
    rotated.unlink()
    eve.touch()
    for path in (compressed, eve):
        age(path, clock.now())
    with pytest.raises(TryLater, match="compressed"):
        await fixed.backfill(EVER)
    compressed.write_bytes(whole)
    age(compressed, clock.now())
    await fixed.backfill(EVER)
    assert fixed.ids == [str(number) for number in range(500)]


async def test_damaged_file_is_reported_as_loss(fixed, eve, clock):
    eve.touch()
    damaged = eve.with_name("eve.json.1.gz")
    damaged.write_bytes(gzip.compress(b'{"n":1}\n' * 5000)[:-10])
    clock.advance(days=3650)
    pages = await fixed.backfill(EVER)
    [lost] = [part for page in pages for part in page.covered if part.lost]
    assert (lost.source, "damaged" in lost.lost) == (str(damaged), True)
    assert windows_of(pages)[-1] == (START, EVER.end)


async def test_file_moved_during_discovery_is_read_later(feed, eve, rotated, write, monkeypatch):
    from tocsin_connectors.siem.files import discovery, reader

    write(eve, 1)

    def find_and_rotate(*what):
        monkeypatch.undo()
        findings = discovery.find_files(*what)
        eve.rename(rotated)
        write(eve, 2)
        return findings

    monkeypatch.setattr(reader, "find_files", find_and_rotate)
    with pytest.raises(TryLater, match="rotated"):
        await feed.backfill(EVER)
    assert sorted(ids_of(await feed.backfill(EVER))) == ["1", "2"]


async def test_a_position_of_another_version_is_refused(feed, eve, write):
    write(eve, 1)
    feed.past = {"version": 0}
    with pytest.raises(Refused, match="stored position"):
        await feed.backfill(EVER)


async def test_backfill_can_be_canceled_and_resumed(feed, eve, write, monkeypatch):
    write(eve, 1)
    started, loop = asyncio.Event(), asyncio.get_running_loop()
    parse = feed.provider.to_incident
    monkeypatch.setattr(
        feed.provider, "to_incident", lambda record: loop.call_soon_threadsafe(started.set)
    )
    reading = asyncio.create_task(feed.backfill(EVER))
    await started.wait()
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    monkeypatch.setattr(feed.provider, "to_incident", parse)
    assert ids_of(await feed.backfill(EVER)) == ["1"]


async def test_backfilled_alerts_form_the_same_incidents(make_feed, eve):
    noon = datetime(2024, 11, 20, 12, tzinfo=UTC)
    times = [noon + timedelta(minutes=number) for number in (5, 25, 45, 65)]
    alerts = [
        {
            "timestamp": moment.isoformat(),
            "event_type": "alert",
            "src_ip": "203.0.113.9",
            "alert": {"gid": 1, "signature_id": 9000001, "severity": 1},
        }
        for moment in times
    ]
    eve.write_bytes(b"\n".join(map(orjson.dumps, alerts)) + b"\n")
    feed = make_feed(eve, Suricata)
    [read] = await feed.read()
    window = Window(noon + timedelta(minutes=20), noon + timedelta(minutes=50))
    pages = await feed.backfill(window)
    [incident] = pages[0].incidents
    assert incident.external_id == read.incidents[0].external_id
    assert incident.alerts == read.incidents[0].alerts[1:]


@settings(
    max_examples=scale_examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    files=st.lists(st.lists(st.integers(0, 40), max_size=12), min_size=1, max_size=4),
    window=st.tuples(st.integers(0, 40), st.integers(0, 40)),
    stops=st.lists(st.integers(1, 3), max_size=6),
)
def test_interrupted_backfill_reads_every_record_once(make_feed, monkeypatch, files, window, stops):
    monkeypatch.setattr("tocsin_connectors.siem.files.batch.MAX_RECORDS", 2)
    begin, end = sorted(window)

    async def read(feed):
        pages = []
        for most in [*stops, 1000]:
            pages += await feed.backfill(minutes(begin, end), most=most)
        return pages

    with tempfile.TemporaryDirectory() as folder:
        for name, numbers in enumerate(files):
            # Files that begin alike would be taken for copies of each other
            lines = [f'{{"name":{name}}}', *(f'{{"n":{number}}}' for number in numbers)]
            Path(folder, f"{name}.json").write_text("\n".join(lines) + "\n")
        pages = asyncio.run(read(make_feed(f"{folder}/*.json")))
    expected = [number for numbers in files for number in numbers if begin <= number < end]
    assert sorted(map(int, ids_of(pages))) == sorted(expected)
    assert windows_of(pages)[-1] == (minutes(begin, end).start, minutes(begin, end).end)

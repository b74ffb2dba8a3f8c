"""What the account says of the coverage ledger."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tocsin import Provider
from tocsin.accounting import period_report
from tocsin.incidents import PUSH_STREAM
from tocsin.incidents.coverage.positions import StreamKey
from tocsin.incidents.sync.lease import acquire_lease
from tocsin.model import Rejected

from .conftest import KEY

FILE = "/var/log/eve.json"
HOUR = timedelta(hours=1)
on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


def spans(proof: dict, of: str = "gaps") -> list[tuple]:
    return [(item["source"], item["from"], item["to"]) for item in proof[of]]


async def test_what_was_read_is_told_by_source(happened, clock):
    record = Rejected(source=FILE, location="byte 3", reason="not JSON", content=b"{")
    await happened.read((FILE, 0, 100), records=7, rejected=(record,))
    clock.advance(minutes=1)
    await happened.read((FILE, 100, 150), records=3)
    proof = await happened.prove()
    [source] = proof["coverage"]
    assert source == {
        "provider": "edge",
        "stream": "changed",
        "source": FILE,
        "from": 0,
        "to": 150,
        "intervals": 1,
        "stretches": 1,
        "records": 10,
        "new": 0,
        "changed": 0,
        "rejected": 1,
        "read_at": "2026-11-21T12:01:00.000Z",
    }
    assert proof["quarantined"] == 1
    assert proof["unaccounted"] == []


@on_sqlite
async def test_the_gaps_that_were_found_first_are_listed(happened, clock, monkeypatch):
    monkeypatch.setattr(period_report, "MAX_LISTED", 2)
    late = StreamKey("edge", "late")
    await happened.read(("late", 0, 10), key=late)  # the first stream in the ledger
    for start in (20, 40):
        clock.advance(minutes=1)
        await happened.read((FILE, start, start + 10))
    clock.advance(minutes=1)
    await happened.read(("late", 15, 20), key=late)
    proof = await happened.prove()
    assert spans(proof) == [(FILE, 0, 20), (FILE, 30, 40)]
    assert [item["what"] for item in proof["unaccounted"]] == [f"edge/changed {FILE}"] * 2


@on_sqlite
async def test_each_kind_is_cut_for_itself(happened, clock, monkeypatch):
    monkeypatch.setattr(period_report, "MAX_LISTED", 2)
    for minute in range(3):
        clock.advance(minutes=1)
        push = StreamKey(f"edge-{minute}", PUSH_STREAM)
        await happened.fail("unknown sender", key=push)
        await happened.read((FILE, 20 * minute + 10, 20 * minute + 20))
    kinds = [kind for kind, _ in await happened.unaccounted()]
    assert kinds == ["gap", "gap", "refused-push", "refused-push"]


async def test_a_gap_in_a_file_is_a_hole_and_unaccounted_for(happened, clock):
    await happened.read((FILE, 0, 100))
    clock.advance(minutes=1)
    await happened.read((FILE, 140, 150))
    proof = await happened.prove()
    assert spans(proof) == [(FILE, 100, 140)]
    [item] = proof["unaccounted"]
    assert item == {
        "kind": "gap",
        "what": f"edge/changed {FILE}",
        "since": "2026-11-21T12:01:00.000Z",
        "detail": "bytes 100 to 140: Tocsin did not read this interval",
    }


async def test_a_gap_to_what_was_read_long_before_is_a_hole_too(happened, clock):
    await happened.read((FILE, 0, 100))
    clock.advance(days=40)
    await happened.read((FILE, 140, 150))
    assert spans(await happened.prove()) == [(FILE, 100, 140)]


async def test_what_goes_on_where_it_ended_long_before_has_no_hole(happened, clock):
    await happened.read((FILE, 0, 100))
    clock.advance(days=40)
    await happened.read((FILE, 100, 150))
    assert await happened.unaccounted() == []


async def test_a_file_that_was_rotated_after_an_idle_month_has_no_hole(happened, clock):
    await happened.read((FILE, 0, 100))
    await happened.read(("/var/log/other.json", 0, 3))
    clock.advance(days=40)
    await happened.read((f"{FILE}.1", 100, 130))
    await happened.read((FILE, 0, 10))
    assert await happened.unaccounted() == []


async def test_a_copy_read_from_where_a_growing_row_was_then_has_no_hole(happened, clock):
    await happened.read((FILE, 0, 100))
    clock.advance(minutes=1)
    await happened.read(("/var/log/copy.json", 100, 130))
    clock.advance(minutes=1)
    await happened.read((FILE, 100, 150))
    assert await happened.unaccounted() == []


async def test_a_gap_in_time_is_a_hole_until_it_was_read_after_all(happened, clock):
    noon = clock.now()
    clock.advance(hours=3)
    await happened.read(("cloud", noon, noon + HOUR))
    await happened.read(("cloud", noon + 2 * HOUR, noon + 3 * HOUR))
    hole = ("cloud", "2026-11-21T13:00:00.000Z", "2026-11-21T14:00:00.000Z")
    assert spans(await happened.prove()) == [hole]
    clock.advance(days=2)
    back, ended = 3 * 24 * HOUR, 47 * HOUR
    assert spans(await happened.prove(back=back, ended=ended)) == [hole]
    await happened.read(("cloud", noon + HOUR, noon + 2 * HOUR))
    assert spans(await happened.prove(back=back, ended=ended)) == []


async def test_reading_up_on_a_time_long_ago_makes_no_hole_of_what_lies_between(happened, clock):
    now = clock.now()
    await happened.read(("cloud", now - HOUR, now))
    clock.advance(hours=1)
    await happened.read(("cloud", now - 900 * HOUR, now - 800 * HOUR))
    clock.advance(hours=1)
    await happened.read(("cloud", now, now + 2 * HOUR))
    assert await happened.unaccounted() == []
    assert await happened.unaccounted(back=timedelta(minutes=1)) == []


async def test_a_page_that_does_not_say_what_it_covers_makes_no_hole(happened, clock):
    for _ in range(3):
        await happened.read(records=1)
        clock.advance(hours=2)
    assert await happened.unaccounted() == []


async def test_a_stretch_that_was_lost_is_unaccounted_for_with_its_reason(happened):
    await happened.read((FILE, 0, 100), (FILE, 100, 130, "the file was truncated"))
    proof = await happened.prove()
    assert spans(proof, "lost") == [(FILE, 100, 130)]
    [item] = proof["unaccounted"]
    assert (item["kind"], item["detail"]) == ("lost", "bytes 100 to 130: the file was truncated")


async def test_a_failure_is_told_and_whether_it_is_over(happened, clock):
    await happened.fail("it answers 503")
    clock.advance(minutes=5)
    await happened.fail("it answers 503")
    [failure] = (await happened.prove())["failures"]
    assert failure == {
        "provider": "edge",
        "stream": "changed",
        "outcome": "later",
        "reason": "it answers 503",
        "from": "2026-11-21T12:00:00.000Z",
        "to": "2026-11-21T12:05:00.000Z",
        "read_since": False,
    }
    clock.advance(minutes=1)
    await happened.read((FILE, 0, 100))
    proof = await happened.prove()
    assert proof["failures"][0]["read_since"]
    assert proof["unaccounted"] == []


async def test_a_failure_between_two_reads_of_a_feed_is_no_hole(happened, clock):
    noon = clock.now()
    await happened.read(("changed", noon - HOUR, noon))
    clock.advance(minutes=10)
    await happened.fail()
    clock.advance(minutes=10)
    await happened.read(("changed", noon, clock.now()))
    assert await happened.unaccounted() == []


# Silence


async def read_an_hour(happened, clock, key: StreamKey = KEY) -> None:
    now = clock.now()
    await happened.read(("cloud", now - HOUR, now), key=key)


async def test_a_feed_that_was_not_read_for_over_an_hour_is_silent(happened, clock):
    await read_an_hour(happened, clock)
    clock.advance(minutes=60)
    assert await happened.unaccounted() == []
    clock.advance(minutes=1)
    assert await happened.unaccounted() == [("silent", "edge/changed")]
    clock.advance(days=3)
    assert await happened.unaccounted() == [("silent", "edge/changed")]


async def test_a_stream_that_is_rarely_read_is_silent_after_three_of_its_intervals(happened, clock):
    settings = Provider.Settings(plugin="cloud", poll_interval="1m")
    intervals = {KEY.stream: 2 * HOUR}
    when = clock.now()
    await happened.database.write(
        acquire_lease, KEY.provider, settings, 1, when, intervals=intervals
    )
    await read_an_hour(happened, clock)
    clock.advance(hours=6)
    assert await happened.unaccounted() == []
    clock.advance(minutes=1)
    assert await happened.unaccounted() == [("silent", "edge/changed")]


async def test_a_feed_that_went_silent_within_the_hour_before_is_read_again(happened, clock):
    await read_an_hour(happened, clock)
    clock.advance(hours=5)
    noon = clock.now()
    await happened.read(("cloud", noon - 5 * HOUR, noon))
    assert await happened.unaccounted() == []


async def test_a_failure_says_why_a_feed_is_silent_as_long_as_it_is_tried(happened, clock):
    await read_an_hour(happened, clock)
    clock.advance(hours=2)
    await happened.fail()
    assert await happened.unaccounted() == []
    assert await happened.unaccounted(back=timedelta(minutes=1)) == []
    clock.advance(minutes=61)
    assert await happened.unaccounted() == [("silent", "edge/changed")]


@on_sqlite
async def test_a_provider_that_was_removed_is_asked_after_for_a_week(happened, clock):
    await read_an_hour(happened, clock)
    clock.advance(days=6)
    assert await happened.unaccounted() == [("silent", "edge/changed")]
    clock.advance(days=1)
    assert await happened.unaccounted() == []


@on_sqlite
async def test_a_file_to_which_nothing_is_added_is_not_silent(happened, clock):
    await happened.read((FILE, 0, 100))
    clock.advance(hours=20)
    assert await happened.unaccounted() == []

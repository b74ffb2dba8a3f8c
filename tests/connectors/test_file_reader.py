"""Reading of one growing file."""

from __future__ import annotations

import asyncio
import os
import tracemalloc
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tocsin import Refused, TryLater
from tocsin_connectors.siem.files import discovery, reader

MIB = 1024 * 1024
A_WHILE = timedelta(minutes=2)


async def test_every_record_is_read_once(feed, eve, write):
    write(eve, 1, 2)
    await feed.read()
    write(eve, 3)
    await feed.read()
    assert feed.ids == ["1", "2", "3"]


async def test_each_page_covers_the_bytes_that_it_read(feed, eve, write):
    write(eve, 1, 2)
    await feed.read()
    write(eve, 3)
    await feed.read()
    covered = [(one.source, one.start, one.end) for page in feed.pages for one in page.covered]
    assert covered == [(str(eve), 0, 16), (str(eve), 16, 24)]


async def test_idle_read_opens_no_file(feed, eve, write, monkeypatch):
    write(eve, 1)
    await feed.read()
    monkeypatch.setattr("tocsin_connectors.siem.files.reader.OpenFile", None)
    assert await feed.read() == []


async def test_incomplete_line_waits_for_its_end(feed, eve):
    eve.write_text('{"n":1}\n{"n":')
    await feed.read(A_WHILE)
    assert feed.ids == ["1"]
    with eve.open("a") as file:
        file.write("2}\n")
    await feed.read()
    assert feed.ids == ["1", "2"]


async def test_other_records_are_counted_without_blank_lines(feed, eve):
    eve.write_text('{"other":1}\n\n  \r\n{"n":1}\r\n')
    (page,) = await feed.read()
    assert (page.records, feed.ids) == (2, ["1"])


@pytest.mark.parametrize("bad", [b"{", b"[1]", b'"text"', b"\xff\xfe{}", b'{"n":"\xc3("}', b"nul"])
async def test_invalid_line_is_quarantined(feed, eve, bad):
    eve.write_bytes(b'{"n":1}\n' + bad + b'\n{"n":2}\n')
    await feed.read()
    assert feed.ids == ["1", "2"]
    (rejected,) = feed.rejected
    assert (rejected.source, rejected.location) == (str(eve), "byte 8")
    assert rejected.content == bad
    assert rejected.reason


async def test_parser_bug_quarantines_one_record(feed, eve, write, monkeypatch):
    monkeypatch.setattr(feed.provider, "to_incident", lambda record: record["missing"])
    write(eve, 1, 2)
    (page,) = await feed.read()
    assert [rejected.location for rejected in page.rejected] == ["byte 0", "byte 8"]


async def test_too_long_line_is_skipped(feed, eve, write):
    write(eve, 1)
    with eve.open("ab") as file:
        file.write(b"x" * (MIB + 1) + b"\n")
    write(eve, 2)
    await feed.read()
    assert feed.ids == ["1", "2"]
    (rejected,) = feed.rejected
    assert rejected.content == b"x" * 16 * 1024
    assert "longer" in rejected.reason


async def test_line_longer_than_a_page_is_skipped_in_little_memory(feed, eve, write):
    eve.write_bytes(b"x" * (10 * MIB))
    with_newline = b"y" * (3 * MIB) + b"\n"
    tracemalloc.start()
    await feed.read()
    with eve.open("ab") as file:
        file.write(with_newline)
    write(eve, 1)
    pages = await feed.read()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (feed.ids, len(feed.rejected), len(pages)) == (["1"], 1, 1)
    assert peak < 12 * MIB


async def test_a_big_file_is_read_in_pages_and_little_memory(feed, eve):
    line = b'{"other":"' + b"x" * 2000 + b'"}\n'
    eve.write_bytes(line * (32 * MIB // len(line)) + b'{"n":1}\n')
    tracemalloc.start()
    pages = await feed.read()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (len(pages), feed.ids) == (4, ["1"])
    assert peak < 8 * MIB


async def test_a_page_holds_at_most_a_thousand_records(feed, eve, write):
    write(eve, *range(2500))
    eve.open("a").close()
    pages = await feed.read()
    assert [len(page.incidents) for page in pages] == [1000, 1000, 500]


async def test_reading_resumes_after_the_last_stored_page(feed, eve, write):
    write(eve, *range(2500))
    await feed.read(most=1)
    await feed.read(most=1)
    await feed.read()
    assert feed.ids == [str(number) for number in range(2500)]


async def test_lines_written_during_a_read_wait_for_the_next(feed, eve, write):
    write(eve, *range(1500))
    async for page in feed.provider.read("changed", None, datetime.now(UTC)):
        feed.pages.append(page)
        write(eve, 9999)
    assert len(feed.ids) == 1500


async def test_event_loop_runs_while_files_are_read(feed, eve, monkeypatch):
    eve.write_text('{"n":1}\n')
    started, finish = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def slowly(record):
        loop.call_soon_threadsafe(started.set)
        asyncio.run_coroutine_threadsafe(finish.wait(), loop).result(5)

    monkeypatch.setattr(feed.provider, "to_incident", slowly)
    reading = asyncio.create_task(feed.read())
    await started.wait()
    finish.set()
    assert len(await reading) == 1


async def test_a_read_can_be_cancelled_and_repeated(feed, eve, write, monkeypatch):
    write(eve, 1)
    started = asyncio.Event()
    loop = asyncio.get_running_loop()
    parse = feed.provider.to_incident
    monkeypatch.setattr(
        feed.provider, "to_incident", lambda record: loop.call_soon_threadsafe(started.set)
    )
    reading = asyncio.create_task(feed.read())
    await started.wait()
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    monkeypatch.setattr(feed.provider, "to_incident", parse)
    await feed.read()
    assert feed.ids == ["1"]


@pytest.mark.parametrize(
    "position",
    [{}, {"version": 2, "files": []}, {"version": 1}, {"version": 1, "files": [{"offset": "x"}]}],
)
async def test_a_position_of_another_version_is_refused(feed, eve, write, position):
    write(eve, 1)
    feed.position = position
    with pytest.raises(Refused, match="stored position"):
        await feed.read()


async def test_missing_file_is_tried_later(feed, eve, write):
    with pytest.raises(TryLater, match=r"eve\.json: No such file"):
        await feed.read()
    write(eve, 1)
    await feed.read()
    assert feed.ids == ["1"]


async def test_glob_without_match_is_tried_later(make_feed, tmp_path):
    with pytest.raises(TryLater, match="no file matches"):
        await make_feed(tmp_path / "*.json").read()


async def test_one_unreadable_file_does_not_stop_the_others(make_feed, tmp_path, write, no_access):
    write(tmp_path / "a.json", 1)
    write(tmp_path / "b.json", 2)
    write(tmp_path / "c.json", 3)
    no_access(tmp_path / "b.json")
    feed = make_feed(tmp_path / "*.json")
    with pytest.raises(TryLater, match=r"b\.json: Permission denied"):
        await feed.read()
    assert sorted(feed.ids) == ["1", "3"]


async def test_too_many_files_are_refused(make_feed, tmp_path, monkeypatch):
    monkeypatch.setattr("tocsin_connectors.siem.files.reader.MAX_FILES", 2)
    for name in ("a.json", "b.json", "c.json"):
        (tmp_path / name).touch()
    with pytest.raises(Refused, match="3 files"):
        await make_feed(tmp_path / "*.json").read()


class TestCheck:
    """Everything that stands in the way of following the files is named at once."""

    async def test_readable_file_has_no_problems(self, feed, eve):
        eve.touch()
        health = await feed.provider.check()
        assert (health.problems, health.detail) == ((), f"1 file at {eve}")

    async def test_missing_file_is_reported(self, feed, eve):
        health = await feed.provider.check()
        assert health.problems == (f"{eve}: No such file or directory",)

    async def test_glob_without_match_is_reported(self, make_feed, tmp_path):
        health = await make_feed(tmp_path / "eve-*.json").provider.check()
        assert health.problems == (f"no file matches {tmp_path}/eve-*.json yet",)
        assert health.detail == f"0 files at {tmp_path}/eve-*.json"

    @pytest.mark.parametrize("name", ["eve.json", "eve-*.json", "*/eve.json"])
    async def test_missing_folder_is_reported(self, make_feed, tmp_path, name):
        (problem,) = (await make_feed(tmp_path / "away" / name).provider.check()).problems
        assert (
            problem == f"the folder {tmp_path}/away does not exist, or Tocsin's user cannot see it"
        )

    @pytest.mark.parametrize("name", ["eve.json", "eve-*.json"])
    async def test_unreadable_folder_is_reported(self, make_feed, tmp_path, no_access, name):
        no_access(tmp_path)
        (problem,) = (await make_feed(tmp_path / name).provider.check()).problems
        assert problem == f"Tocsin's user cannot list the folder {tmp_path}"

    async def test_directory_path_is_reported(self, feed, eve):
        eve.mkdir()
        assert (await feed.provider.check()).problems == (f"{eve} is a directory",)

    async def test_irregular_file_is_reported(self, feed, eve):
        os.mkfifo(eve)
        assert (await feed.provider.check()).problems == (f"{eve} is not a regular file",)

    async def test_unreadable_file_is_reported(self, feed, eve, no_access):
        eve.touch()
        no_access(eve)
        assert (await feed.provider.check()).problems == (f"Tocsin's user cannot read {eve}",)

    async def test_too_many_files_are_reported(self, make_feed, tmp_path, monkeypatch):
        monkeypatch.setattr("tocsin_connectors.siem.files.health.MAX_FILES", 1)
        for name in ("a.json", "b.json"):
            (tmp_path / name).touch()
        (problem,) = (await make_feed(tmp_path / "*.json").provider.check()).problems
        assert problem == "2 files match; Tocsin reads at most 1"

    async def test_required_file_permissions_are_reported(self, feed):
        assert feed.provider.permissions == ("read access to the files and their folders",)


async def test_a_name_need_not_be_utf_8(make_feed, eve, write):
    odd = eve.with_name(os.fsdecode(b"caf\xe9 100%.json"))
    write(odd, 1)
    feed = make_feed(eve.with_name("*.json"))
    await feed.read()
    write(odd, 2)
    await feed.read()
    assert feed.ids == ["1", "2"]


class TestFirstFetch:
    """Files last written long ago are taken as read at the very first read."""

    @pytest.fixture(autouse=True)
    def old_and_new(self, eve, write, compress):
        write(old := eve.with_name("eve.json.2"), 1, 2)
        os.utime(compress(old), (0, 0))
        write(rotated := eve.with_name("eve.json.1"), 3)
        os.utime(rotated, (1, 1))
        write(eve, 4)

    async def test_old_files_are_skipped_and_reported(self, feed):
        await feed.read()
        assert (feed.ids, feed.lost) == (["4"], [])
        passed = [
            (Path(interval.source).name, interval.start, interval.end)
            for interval in feed.passed_over
        ]
        assert passed == [("eve.json.2.gz", 0, 16), ("eve.json.1", 0, 8)]
        assert "longer ago than first_fetch" in feed.passed_over[0].passed_over

    async def test_old_files_are_skipped_after_an_interrupted_first_read(self, feed):
        for _ in range(5):
            await feed.read(most=1)
        assert (feed.ids, len(feed.passed_over)) == (["4"], 2)

    async def test_lines_written_while_old_files_are_skipped_are_read(
        self, feed, eve, write, monkeypatch
    ):
        def find_and_write(*what):
            monkeypatch.undo()
            findings = discovery.find_files(*what)
            write(eve.with_name("eve.json.1"), 5)
            return findings

        monkeypatch.setattr(reader, "find_files", find_and_write)
        await feed.read()
        await feed.read()
        assert "5" in feed.ids

    async def test_lines_added_to_old_files_are_read(self, feed, eve, write):
        await feed.read()
        write(eve.with_name("eve.json.1"), 5)
        await feed.read()
        assert feed.ids == ["4", "5"]

    async def test_renamed_old_files_stay_skipped(self, feed, eve):
        await feed.read()
        eve.with_name("eve.json.1").rename(eve.with_name("eve.json.3"))
        await feed.read()
        assert feed.ids == ["4"]

    async def test_old_files_are_remembered_without_other_files(self, feed, eve):
        os.utime(eve, (0, 0))
        await feed.read()
        assert await feed.read() == []
        assert feed.ids == []

    async def test_longer_first_read_includes_old_files(self, make_feed, eve):
        feed = make_feed(eve, first_fetch="5000w")
        await feed.read()
        assert feed.ids == ["1", "2", "3", "4"]

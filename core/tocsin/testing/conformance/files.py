"""Rules for the growth, rotation, compression and truncation of followed files."""

from __future__ import annotations

from contextlib import aclosing
from datetime import timedelta
from itertools import pairwise

import orjson

from tocsin.errors import PluginFailure, TryLater
from tocsin.hookspecs import Capability
from tocsin.model import Entity, EntityKind, Health, Window
from tocsin.testing.conformance.file_harness import FileConformance, FileHarness
from tocsin.testing.conformance.page_reader import PageReader, ReaderStore, round_trip_json
from tocsin.testing.conformance.rules import does_not_apply, expect, expect_failure, rule

_NO_RECORDS = (b"{\n", b"\xff\xfe\x00\n", b'"text"\n', b"[]\n")
_ADDRESS = Entity(EntityKind.IP, "198.51.100.9")
_MANY = 2_500
_LONG = b"x" * 3 * 1024 * 1024 + b"\n"
_MOST_PAGES = 100


class FileRules(FileConformance):
    """Rules for followed files."""

    @rule
    async def test_appended_lines_arrive_once(self) -> None:
        """Each appended line arrives exactly once.

        If the position were a time or a line number, reads would repeat or skip lines.
        """
        async with self.harness() as harness:
            for _ in range(3):
                harness.put_many(3)
                await harness.arrive()
            harness.expect_all()
            _expect_count(harness, 9)

    @rule
    async def test_an_incomplete_line_waits(self) -> None:
        """An incomplete last line is not read until it is complete.

        Programs write in blocks, so an incomplete line is not an error: the rest follows later.
        """
        async with self.harness() as harness:
            harness.put()
            case = harness.siem.put(harness.case())
            half = harness.line(case)
            harness.write(half[:20])
            await harness.arrive()
            expect(not harness.store.rejected, "half a line was rejected")
            harness.write(half[20:])
            await harness.arrive()
            harness.expect_all()

    @rule
    async def test_a_malformed_line_is_rejected(self) -> None:
        """Lines that are not records are rejected with their content, and all other lines are read.

        A full disk or a crash can damage lines.
        """
        async with self.harness() as harness:
            harness.put()
            for line in _NO_RECORDS:
                harness.write(line)
            harness.put()
            await harness.arrive()
            harness.expect_all()
            kept = len(harness.store.rejected)
            expect(kept == len(_NO_RECORDS), f"{kept} of {len(_NO_RECORDS)} were rejected")

    @rule
    async def test_a_very_long_line_does_not_stop_the_feed(self) -> None:
        """A line of three megabytes is read or rejected, and all other lines are read.

        A program can log a whole request body in one line. Such a line must not exhaust memory or
        keep other incidents from arriving.
        """
        async with self.harness() as harness:
            harness.put()
            harness.write(_LONG)
            harness.put()
            await harness.arrive()
            harness.expect_all()

    @rule
    async def test_lines_before_a_rotation_arrive(self) -> None:
        """When the file is rotated, lines that were written just before or after the rotation still
        arrive.

        A file is rotated whether or not the provider has read all of it.
        """
        async with self.harness() as harness:
            harness.put()
            await harness.arrive()
            harness.put()
            self.rotate(harness.path)
            harness.put()
            await harness.arrive()
            await harness.arrive()
            harness.expect_all()

    @rule
    async def test_a_rotated_file_is_not_read_again(self) -> None:
        """A file that is renamed or compressed after it was read is not read again.

        If the provider identified files by name, it would read a whole day's lines again after each
        nightly rotation.
        """
        async with self.harness() as harness:
            harness.put_many(3)
            await harness.arrive()
            aside = self.rotate(harness.path)
            harness.put()
            await harness.arrive()
            self.compress(aside)
            await harness.arrive()
            await harness.arrive()
            _expect_count(harness, 4)

    @rule
    async def test_unread_compressed_lines_arrive(self) -> None:
        """Lines that were unread when their file was compressed still arrive.

        After a weekend without reads, all files might be compressed.
        """
        async with self.harness() as harness:
            harness.put()
            await harness.arrive()
            harness.put_many(3)
            self.compress(self.rotate(harness.path))
            harness.put()
            await harness.arrive()
            await harness.arrive()
            harness.expect_all()

    @rule
    async def test_a_copied_and_truncated_file_is_followed(self) -> None:
        """If a file is copied and then truncated, each of its lines still arrives exactly once.

        This is how logrotate rotates files with the option `copytruncate`, for programs that never
        close their file.
        """
        async with self.harness() as harness:
            harness.put_many(3)
            await harness.arrive()
            harness.put()
            copy = harness.path.with_name(f"{harness.path.name}.1")
            copy.write_bytes(harness.path.read_bytes())
            harness.path.write_bytes(b"")
            harness.put()
            await harness.arrive()
            await harness.arrive()
            harness.expect_all()
            _expect_count(harness, 5)

    @rule
    async def test_a_new_process_continues(self) -> None:
        """A new process continues from the stored position.

        State outside the position is lost with the process.
        """
        async with self.harness() as harness:
            harness.put_many(3)
            await harness.arrive()
            await harness.restart()
            harness.put()
            await harness.arrive()
            harness.expect_all()
            _expect_count(harness, 4)

    @rule
    async def test_reading_may_stop_after_any_page(self) -> None:
        """If a process ends after any page, the next process continues without a gap.

        Long files have many pages, and processes can end at any time.
        """
        async with self.harness() as harness:
            harness.put_many(_MANY)
            harness.clock.advance(minutes=2)
            pages = 0
            while await harness.reader.read(1):
                await harness.restart()
                pages += 1
                expect(pages < _MOST_PAGES, f"not finished after {pages} pages")
            harness.expect_all()
            expect(pages > 1, f"{_MANY} records in one page, which is one transaction")

    @rule
    async def test_a_page_that_was_not_stored_is_read_again(self) -> None:
        """When a page was not stored, the next read returns its incidents again.

        A provider that keeps its own position would skip the page.
        """
        async with self.harness() as harness:
            harness.put_many(3)
            harness.clock.advance(minutes=2)
            await PageReader(harness.provider, ReaderStore()).read()
            await harness.restart()
            await harness.arrive()
            harness.expect_all()

    @rule
    async def test_two_reads_from_one_position_agree(self) -> None:
        """Two reads from the same position return the same result, even if the same provider object
        performs both reads.

        When Tocsin cannot store a page, it reads the page again. A provider that keeps state in its
        object would skip the page.
        """
        async with self.harness() as harness:
            harness.put_many(3)
            harness.clock.advance(minutes=2)
            one, other = await harness.reader.peek(), await harness.reader.peek()
            same = [page.incidents for page in one] == [page.incidents for page in other]
            expect(same, "they differ")

    @rule
    async def test_a_position_survives_json(self) -> None:
        """A position is a JSON object that stays the same when it is stored and loaded.

        Tocsin stores positions as JSON, which does not preserve tuples, times and numeric keys.
        """
        async with self.harness() as harness:
            harness.put_many(3)
            for page in await harness.reader.peek():
                again = orjson.loads(round_trip_json(page.next_position))
                expect(
                    again == page.next_position, f"{page.next_position!r} came back as {again!r}"
                )

    @rule
    async def test_coverage_has_no_gaps(self) -> None:
        """Each `covered` interval starts at exactly the byte at which the previous interval ends.

        From these intervals, Tocsin builds the coverage ledger, in which operators see that nothing
        is missing.
        """
        async with self.harness() as harness:
            for _ in range(3):
                harness.put_many(3)
                await harness.arrive()
            intervals = harness.store.covered
            expect(intervals, "no page reports `covered` intervals")
            for one, next_one in pairwise(intervals):
                expect(one.end == next_one.start, f"to {one.end}, then from {next_one.start}")
            size = harness.path.stat().st_size
            expect(intervals[-1].end == size, f"to {intervals[-1].end} of {size} bytes")

    @rule
    async def test_a_missing_file_is_temporary(self) -> None:
        """A missing file raises `TryLater`, and the file is read once it appears.

        The program that writes the file can start after Tocsin, and a rotation briefly removes the
        file.
        """
        async with self.harness() as harness:
            expect_failure(await harness.reader.failure(), TryLater)
            harness.put()
            await harness.arrive()
            harness.expect_all()

    @rule
    async def test_a_missing_file_is_not_an_empty_result(self) -> None:
        """`events` raises `TryLater` if the file is missing.

        Otherwise, an investigation's report would say that there was no activity.
        """
        async with self.harness() as harness:
            if Capability.EVENTS not in self.provider.capabilities():
                does_not_apply(f"the provider does not offer {Capability.EVENTS}")
            now = harness.clock.now()
            asked = (_ADDRESS, Window(now - timedelta(hours=1), now), 1)
            error = None
            try:
                async with aclosing(harness.provider.events(*asked)) as events:
                    _ = [event async for event in events]
            except PluginFailure as failure:
                error = failure
            expect_failure(error, TryLater)

    @rule
    async def test_check_reports_a_missing_file(self) -> None:
        """`check` reports a missing file, but does not report a problem if the file exists.

        The most common mistake is a misspelled path.
        """
        async with self.harness() as harness:
            expect((await _health(harness)).problems, "no problem without a file")
            harness.put()
            problems = (await _health(harness)).problems
            expect(not problems, f"problems: {problems}")


def _expect_count(harness: FileHarness, count: int) -> None:
    came = len(harness.store.delivered)
    expect(came == count, f"{came} of {count} arrived")


async def _health(harness: FileHarness) -> Health:
    try:
        return await harness.provider.check()
    except PluginFailure as error:
        return Health(detail="", problems=(str(error),))

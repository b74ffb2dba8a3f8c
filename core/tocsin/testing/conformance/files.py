"""Rules for followed files: growth, rotation, compression, truncation."""

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
    """How files are followed."""

    @rule
    async def test_what_is_appended_arrives_once(self) -> None:
        """Each line that is appended arrives, and arrives once.

        A position by time, or by the number of lines, repeats or skips some.
        """
        async with self.harness() as lab:
            for _ in range(3):
                lab.put_many(3)
                await lab.arrive()
            lab.expect_all()
            _expect_count(lab, 9)

    @rule
    async def test_a_line_that_is_not_whole_waits(self) -> None:
        """The last line waits until it is whole.

        Writers write in blocks: half a line is neither a record nor a broken one.
        """
        async with self.harness() as lab:
            lab.put()
            case = lab.siem.put(lab.case())
            half = lab.line(case)
            lab.write(half[:20])
            await lab.arrive()
            expect(not lab.store.rejected, "half a line was rejected")
            lab.write(half[20:])
            await lab.arrive()
            lab.expect_all()

    @rule
    async def test_a_line_that_is_no_record_is_rejected(self) -> None:
        """Lines that are no records are rejected, each with its content, and the rest is read.

        Disks fill up and machines crash: some lines of a file are always broken.
        """
        async with self.harness() as lab:
            lab.put()
            for line in _NO_RECORDS:
                lab.write(line)
            lab.put()
            await lab.arrive()
            lab.expect_all()
            kept = len(lab.store.rejected)
            expect(kept == len(_NO_RECORDS), f"{kept} of {len(_NO_RECORDS)} were rejected")

    @rule
    async def test_a_line_that_is_very_long_stops_nothing(self) -> None:
        """A line of three megabytes is read or rejected, and the rest is read.

        One request body in a log would stop the feed, or take all the memory.
        """
        async with self.harness() as lab:
            lab.put()
            lab.write(_LONG)
            lab.put()
            await lab.arrive()
            lab.expect_all()

    @rule
    async def test_what_was_not_read_before_the_rotation_arrives(self) -> None:
        """What was written just before the file was put aside arrives, and so does what follows.

        Rotation does not wait for those who read.
        """
        async with self.harness() as lab:
            lab.put()
            await lab.arrive()
            lab.put()
            self.rotate(lab.path)
            lab.put()
            await lab.arrive()
            await lab.arrive()
            lab.expect_all()

    @rule
    async def test_a_file_that_was_put_aside_is_not_read_again(self) -> None:
        """A file that is renamed or compressed after it was read brings nothing again.

        A file is not its name: each night everything would be read a second time.
        """
        async with self.harness() as lab:
            lab.put_many(3)
            await lab.arrive()
            aside = self.rotate(lab.path)
            lab.put()
            await lab.arrive()
            self.compress(aside)
            await lab.arrive()
            await lab.arrive()
            _expect_count(lab, 4)

    @rule
    async def test_what_was_compressed_unread_arrives(self) -> None:
        """What had not been read when its file was compressed arrives.

        After a weekend without us there are only compressed files.
        """
        async with self.harness() as lab:
            lab.put()
            await lab.arrive()
            lab.put_many(3)
            self.compress(self.rotate(lab.path))
            lab.put()
            await lab.arrive()
            await lab.arrive()
            lab.expect_all()

    @rule
    async def test_a_file_that_is_copied_and_cut_is_read_on(self) -> None:
        """A file that is copied and then emptied goes on, without a gap and without repetition.

        Some rotate so (copytruncate), for writers that never close their file.
        """
        async with self.harness() as lab:
            lab.put_many(3)
            await lab.arrive()
            lab.put()
            copy = lab.path.with_name(f"{lab.path.name}.1")
            copy.write_bytes(lab.path.read_bytes())
            lab.path.write_bytes(b"")
            lab.put()
            await lab.arrive()
            await lab.arrive()
            lab.expect_all()
            _expect_count(lab, 5)

    @rule
    async def test_a_new_process_goes_on(self) -> None:
        """A process that begins anew goes on where the last one had stored its position.

        What is remembered elsewhere is lost with the process.
        """
        async with self.harness() as lab:
            lab.put_many(3)
            await lab.arrive()
            await lab.restart()
            lab.put()
            await lab.arrive()
            lab.expect_all()
            _expect_count(lab, 4)

    @rule
    async def test_reading_may_stop_after_any_page(self) -> None:
        """Whoever stops after a page, in a process that ends there, goes on without a gap.

        A long file is read in many pages, and processes end at any time.
        """
        async with self.harness() as lab:
            lab.put_many(_MANY)
            lab.clock.advance(minutes=2)
            pages = 0
            while await lab.reader.read(1):
                await lab.restart()
                pages += 1
                expect(pages < _MOST_PAGES, f"it is not at its end after {pages} pages")
            lab.expect_all()
            expect(pages > 1, f"{_MANY} records in one page, which is one transaction")

    @rule
    async def test_a_page_that_was_not_stored_is_read_again(self) -> None:
        """A process that ends before a page is stored finds it again at the position before.

        A position that is kept elsewhere skips what was on the page.
        """
        async with self.harness() as lab:
            lab.put_many(3)
            lab.clock.advance(minutes=2)
            await PageReader(lab.provider, ReaderStore()).read()
            await lab.restart()
            await lab.arrive()
            lab.expect_all()

    @rule
    async def test_two_reads_from_one_position_agree(self) -> None:
        """Two reads from the same position bring the same, though by the same object.

        A page whose storing fails is read again: an object that remembers it skips it.
        """
        async with self.harness() as lab:
            lab.put_many(3)
            lab.clock.advance(minutes=2)
            one, other = await lab.reader.peek(), await lab.reader.peek()
            same = [page.incidents for page in one] == [page.incidents for page in other]
            expect(same, "they differ")

    @rule
    async def test_a_position_survives_json(self) -> None:
        """A position is a JSON object that is the same after it was written and read.

        It is kept in the database: a tuple, a time or a number as a key comes back as another.
        """
        async with self.harness() as lab:
            lab.put_many(3)
            for page in await lab.reader.peek():
                again = orjson.loads(round_trip_json(page.next_position))
                expect(
                    again == page.next_position, f"{page.next_position!r} came back as {again!r}"
                )

    @rule
    async def test_what_was_read_is_covered_without_gaps(self) -> None:
        """`covered` begins where it ended before: no byte of a file is left out.

        The ledger is how an operator knows that nothing is missing.
        """
        async with self.harness() as lab:
            for _ in range(3):
                lab.put_many(3)
                await lab.arrive()
            stretches = lab.store.covered
            expect(stretches, "no page says what it covers")
            for one, next_one in pairwise(stretches):
                expect(one.end == next_one.start, f"to {one.end}, then from {next_one.start}")
            size = lab.path.stat().st_size
            expect(stretches[-1].end == size, f"to {stretches[-1].end} of {size} bytes")

    @rule
    async def test_a_file_that_is_missing_passes(self) -> None:
        """A file that is not there raises `TryLater`, and is read when it comes.

        Writers start later than we do, and rotation leaves a moment without a file.
        """
        async with self.harness() as lab:
            expect_failure(await lab.reader.failure(), TryLater)
            lab.put()
            await lab.arrive()
            lab.expect_all()

    @rule
    async def test_a_missing_file_is_not_the_absence_of_events(self) -> None:
        """`events` raises `TryLater` where the file is not there.

        The report would say that an entity did nothing, where nobody can tell.
        """
        async with self.harness() as lab:
            if Capability.EVENTS not in self.provider.capabilities():
                does_not_apply(f"it does not offer {Capability.EVENTS}")
            now = lab.clock.now()
            asked = (_ADDRESS, Window(now - timedelta(hours=1), now), 1)
            error = None
            try:
                async with aclosing(lab.provider.events(*asked)) as events:
                    _ = [event async for event in events]
            except PluginFailure as failure:
                error = failure
            expect_failure(error, TryLater)

    @rule
    async def test_check_names_a_missing_file(self) -> None:
        """`check` says so where there is no file, and that all is well where there is one.

        A misspelt path is what goes wrong most often.
        """
        async with self.harness() as lab:
            expect((await _health(lab)).problems, "no problem without a file")
            lab.put()
            problems = (await _health(lab)).problems
            expect(not problems, f"problems: {problems}")


def _expect_count(lab: FileHarness, count: int) -> None:
    came = len(lab.store.delivered)
    expect(came == count, f"{came} came of {count}")


async def _health(lab: FileHarness) -> Health:
    try:
        return await lab.provider.check()
    except PluginFailure as error:
        return Health(detail="", problems=(str(error),))

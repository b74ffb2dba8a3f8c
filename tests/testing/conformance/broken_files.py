"""Broken providers that follow files."""

from __future__ import annotations

import gzip
import os
from collections import defaultdict
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import orjson
from broken import Broken

from tocsin import Health, Page, TryLater
from tocsin.testing.conformance import FileProviderConformance
from tocsin_connectors.siem.ocsf import Ocsf

SEVERITIES = {"Informational": 1, "Low": 2, "Medium": 3, "High": 4, "Critical": 5}
STATUSES = {"New": 1, "Active": 2, "Closed": 5}


class FindingConformance(FileProviderConformance):
    provider = Ocsf

    def malformed(self, record):
        return {**super().malformed(record), "class_uid": record["class_uid"]}

    def record(self, case):
        return {
            "class_uid": 2005,
            "metadata": {"uid": case.id},
            "time_dt": case.changed_at.isoformat(),
            "start_time_dt": case.created_at.isoformat(),
            "severity": str(case.severity),
            "severity_id": SEVERITIES.get(case.severity, 99),
            "status": {"Active": "In Progress"}.get(case.status, str(case.status)),
            "status_id": STATUSES[case.status],
            "finding_info_list": [{"title": case.title, "desc": case.description}],
            "observables": [{"type_id": 2, "value": entity.value} for entity in case.entities],
        }

    def log_record(self, log_event):
        return {
            "class_uid": 4001,
            "time_dt": log_event.occurred_at.isoformat(),
            "message": log_event.text,
            "src_endpoint": {"ip": log_event.entities[0].value},
        }


FILES = Broken(FindingConformance)
breaks = FILES.breaks


class Files(Ocsf):
    """Does something to the files before it reads them, or yields other pages."""

    @property
    def path(self) -> Path:
        return Path(self.settings.path)

    def prepare(self, position):
        pass

    def changed_page(self, page):
        return page

    def more(self, position):
        """Yield further pages at the end of a read."""
        return ()

    async def read(self, stream, position, until):
        self.prepare(position)
        last = position
        async for page in super().read(stream, position, until):
            last = page.next_position
            yield self.changed_page(page)
        for page in self.more(last):
            yield page


@breaks("test_appended_lines_arrive_once")
class BringsTheThirdPageTwice(Files):
    _count = 0

    def changed_page(self, page):
        self._count += len(page.incidents) == 3
        return replace(page, incidents=page.incidents * (2 if self._count == 3 else 1))


@breaks("test_an_incomplete_line_waits")
class EndsTheLastLine(Files):
    def prepare(self, position):
        if self.path.exists() and (content := self.path.read_bytes()) and content[-1:] != b"\n":
            self.path.write_bytes(content + b"\n")


@breaks("test_a_malformed_line_is_rejected")
class DropsWhatIsNoJson(Files):
    def changed_page(self, page):
        kept = tuple(record for record in page.rejected if record.content.startswith(b'{"'))
        return replace(page, rejected=kept)


@breaks("test_a_very_long_line_does_not_stop_the_feed")
class GivesUpOnLongLines(Files):
    def prepare(self, position):
        if self.path.exists() and b"x" * 2_000_000 in self.path.read_bytes():
            raise TryLater("a line is too long")


class Watching(Files):
    """Remembers what its file was when it was last read."""

    _inode = _size = None

    def prepare(self, position):
        if self.path.exists():
            self.notice(self.path.stat())
            status = self.path.stat()
            self._inode, self._size = status.st_ino, status.st_size

    def notice(self, status):
        pass


@breaks("test_lines_before_a_rotation_arrive")
class FollowsOnlyTheName(Watching):
    def notice(self, status):
        aside = self.path.with_name(f"{self.path.name}.1")
        found = aside.stat() if aside.exists() else None
        if found and found.st_ino == self._inode and found.st_size != self._size:
            aside.unlink()


@breaks("test_a_rotated_file_is_not_read_again")
class ReadsCompressedFilesAgain(Files):
    _done = False

    def more(self, position):
        for path in self.path.parent.glob("*.gz"):
            records = map(orjson.loads, gzip.decompress(path.read_bytes()).splitlines())
            if not self._done:
                self._done = True
                yield Page(next_position=position, incidents=tuple(map(self.to_incident, records)))


@breaks("test_unread_compressed_lines_arrive")
class KnowsNoCompression(Files):
    def prepare(self, position):
        for path in self.path.parent.glob("*.gz"):
            path.unlink()


@breaks("test_a_copied_and_truncated_file_is_followed")
class SkipsWhatFollowsACut(Watching):
    def notice(self, status):
        if status.st_ino == self._inode and status.st_size < self._size:
            os.truncate(self.path, 0)


@breaks("test_a_new_process_continues")
class BringsTheFirstLineAgain(Files):
    """In a new process, once there is more."""

    _resumed = _brought = False

    def prepare(self, position):
        self._resumed = position is not None and not self._brought

    def changed_page(self, page):
        self._brought = self._brought or bool(page.incidents)
        return page

    def more(self, position):
        if self._resumed and self._brought:
            first = self.path.read_bytes().splitlines()[0]
            yield Page(next_position=position, incidents=(self.to_incident(orjson.loads(first)),))


@breaks("test_reading_may_stop_after_any_page")
class GoesOnTooFar(Files):
    """In a new process that is within a large file."""

    _skips = 0

    def prepare(self, position):
        large = self.path.exists() and self.path.stat().st_size > 100_000
        self._skips = position is not None and large

    def changed_page(self, page):
        skipped, self._skips = self._skips, 0
        return replace(page, incidents=page.incidents[skipped:])


class Skipping(Files):
    def skipped(self):
        return set()

    def note(self, names):
        pass

    def changed_page(self, page):
        names = [(incident.external_id, incident.changed_at) for incident in page.incidents]
        versions = dict(zip(names, page.incidents, strict=True))
        left = tuple(versions[name] for name in versions.keys() - self.skipped())
        self.note(names)
        return replace(page, incidents=left)


@breaks("test_a_page_that_was_not_stored_is_read_again")
class AcknowledgesWhatItYields(Skipping):
    def skipped(self):
        fetched = vars(self.tools.clock).get("fetched", {})
        return set().union(*(lines for owner, lines in fetched.items() if owner is not self))

    def note(self, names):
        vars(self.tools.clock).setdefault("fetched", defaultdict(set))[self].update(names)


@breaks("test_two_reads_from_one_position_agree")
class RemembersWhatItYielded(Skipping):
    def __init__(self, settings, tools):
        super().__init__(settings, tools)
        self._yielded = set()

    def skipped(self):
        return self._yielded

    def note(self, names):
        self._yielded.update(names)


@breaks("test_a_position_survives_json")
class KeepsATuple(Ocsf):
    async def read(self, stream, position, until):
        given = position and {name: value for name, value in position.items() if name != "place"}
        async for page in super().read(stream, given, until):
            yield replace(page, next_position={**page.next_position, "place": (1, 2)})


@breaks("test_coverage_has_no_gaps")
class LeavesOutAByte(Files):
    def changed_page(self, page):
        covered = tuple(replace(interval, start=interval.start + 1) for interval in page.covered)
        return replace(page, covered=covered)


@breaks("test_a_missing_file_is_temporary")
class DoesNotMissItsFile(Ocsf):
    async def read(self, stream, position, until):
        try:
            async for page in super().read(stream, position, until):
                yield page
        except TryLater:
            return


@breaks("test_a_missing_file_is_not_an_empty_result")
class KnowsOfNothingWithoutAFile(Ocsf):
    async def events(self, entity, window, limit):
        with suppress(TryLater):
            async for event in super().events(entity, window, limit):
                yield event


@breaks("test_check_reports_a_missing_file")
class IsAlwaysWell(Ocsf):
    async def check(self):
        return Health(detail="all is well")

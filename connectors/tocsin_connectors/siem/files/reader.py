"""Reader of all files: which file is which, what is new in each, and what was lost."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from tocsin import Covered, Page, Refused, TryLater
from tocsin_connectors.siem.files.batch import IncidentParser, LineBatch
from tocsin_connectors.siem.files.discovery import FileCandidate, FileListing, FileState, find_files
from tocsin_connectors.siem.files.lines import LineStream
from tocsin_connectors.siem.files.open_file import OpenFile
from tocsin_connectors.siem.files.position import FilePosition, encode_positions

MAX_FILES = 1000
SETTLE_TIME = timedelta(minutes=1)
"""Time without writes after which a file counts as complete."""

_DAMAGED = "the compressed file is damaged or incomplete ({}); the rest cannot be read"
_TRUNCATED = (
    "the file was truncated or replaced, and no copy of it was found: an unknown amount of data "
    "after this byte was lost"
)
_VANISHED = "the file disappeared before it was read to the end, and no copy of it was found"
_TOO_OLD = "last modified at {}, longer ago than first_fetch"

T = TypeVar("T")


class FileReader:
    """One read of all files, or of those written to `since`, as of `until`.

    It blocks, so it runs in a thread.
    """

    def __init__(
        self,
        pattern: str,
        parser: IncidentParser,
        known: list[FilePosition],
        until: datetime,
        since: datetime | None = None,
    ) -> None:
        self._pattern = pattern
        self._parser = parser
        self._until = until
        self._since = since
        self._earlier = known
        """Positions of earlier reads that this one has not reached yet."""
        self._now: list[FilePosition] = []
        """Positions of this read."""
        self._unreadable: list[str] = []
        self.waits = False
        """Whether a file is left for later, since it is being written or rotated."""

    def pages(self, skip_before: datetime | None = None) -> Generator[Page, None, None]:
        """Yield new records. Files last written before `skip_before` count as read.

        Raises `TryLater` at the end if a file was missing or unreadable, and `Refused` if there are
        too many files.
        """
        findings = find_files(self._pattern, self._since)
        if len(findings.files) > MAX_FILES:
            count = len(findings.files)
            raise Refused(f"{self._pattern}: {count} files match; Tocsin reads at most {MAX_FILES}")
        stored = self._position()
        for page in self._read_all(findings, skip_before):
            stored = dict(page.next_position)
            yield page
        if self._position() != stored:
            yield Page(next_position=self._position())
        if problems := findings.missing + self._unreadable:
            raise TryLater("; ".join(problems))

    def _position(self) -> dict[str, Any]:
        return encode_positions([*self._now, *self._earlier])

    def _read_all(self, findings: FileListing, skip_before: datetime | None) -> Iterator[Page]:
        old = [
            file for file in findings.files if skip_before and file.state.is_older_than(skip_before)
        ]
        # All in one page: after it, the next read is no longer a first read
        if passed := [part for found in old for part in self._try(self._skip, found)]:
            yield Page(next_position=self._position(), covered=tuple(passed))
        for found in findings.files[len(old) :]:
            yield from self._try(self._read, found)
        if lost := self._forget_missing(findings):
            yield Page(next_position=self._position(), covered=tuple(lost))

    def _try(
        self, read: Callable[[FileCandidate], Iterator[T]], found: FileCandidate
    ) -> Iterator[T]:
        """Read a file, which may be unreadable or gone."""
        try:
            yield from read(found)
        except FileNotFoundError:
            self._defer(found.state)
        except OSError as error:
            self._unreadable.append(f"{found.state.path}: {error.strerror or error}")
            self._defer(found.state)

    def _defer(self, state: FileState) -> None:
        """Keep the position of a file that this read cannot process."""
        self.waits = True
        self._now += [known for known in self._earlier if known.state.identity == state.identity]
        self._earlier = [known for known in self._earlier if known not in self._now]

    def _skip(self, found: FileCandidate) -> Iterator[Covered]:
        """Mark a file that is too old for a first read as read, and report it."""
        with OpenFile(found.state.path) as opened:
            if not found.state.is_unchanged(opened.state):
                self._defer(found.state)
                return
            known = opened.position_at_end()
        self._now.append(known)
        yield _report_skipped(known)

    def _read(self, found: FileCandidate) -> Iterator[Page]:
        for known in self._earlier:
            if known.finished and known.state.is_unchanged(found.state):
                self._earlier.remove(known)
                self._now.append(replace(known, state=found.state))
                return
        with OpenFile(found.state.path) as opened:
            if opened.state.identity != found.state.identity:  # rotated meanwhile
                self._defer(found.state)
            else:
                yield from self._recognize(opened, found)

    def _recognize(self, opened: OpenFile, found: FileCandidate) -> Iterator[Page]:
        candidates = sorted(self._now + self._earlier, key=lambda known: -known.offset)
        best = next((known for known in candidates if opened.holds(known)), None)
        if self._may_be_growing(opened, found, candidates, best):
            self._defer(found.state)
            return
        own = [known for known in self._earlier if known.state.identity == found.state.identity]
        for known in own:
            if known is best or opened.holds(known):
                self._earlier.remove(known)
        lines = opened.lines(
            best.offset if best else 0,
            in_long_line=best is not None and best.in_long_line,
            partial=not found.live and not self._is_fresh(found.state),
        )
        yield from self._read_on(opened, lines, live=found.live)

    def _may_be_growing(
        self,
        opened: OpenFile,
        found: FileCandidate,
        candidates: list[FilePosition],
        best: FilePosition | None,
    ) -> bool:
        """Return whether the file may be an unfinished copy."""
        is_known = best is not None and best.state.identity == found.state.identity
        if is_known or found.live or not self._is_fresh(found.state):
            return False
        offset = best.offset if best else 0
        longer = (known for known in candidates if known.offset > offset)
        return any(opened.may_grow_into(known) for known in longer)

    def _read_on(self, opened: OpenFile, lines: LineStream, *, live: bool) -> Iterator[Page]:
        place = len(self._now)
        more = True
        while more:
            batch = LineBatch(self._parser, opened.state.path, lines)
            more = batch.fill()
            is_damaged = not more and self._is_damaged(opened)
            finished = not more and (is_damaged or not (lines.has_rest or opened.damage))
            self._now[place:] = [opened.position_after(lines, finished=finished)]
            self.waits |= not (more or finished or live)
            lost = _report_damage(opened, lines) if is_damaged else None
            if page := batch.page(self._position(), lost):
                yield page

    def _is_damaged(self, opened: OpenFile) -> bool:
        """Return whether truncated compressed content will stay incomplete."""
        return opened.damage is not None and not self._is_fresh(opened.state)

    def _is_fresh(self, state: FileState) -> bool:
        return not state.is_older_than(self._until - SETTLE_TIME)

    def _forget_missing(self, findings: FileListing) -> list[Covered]:
        """Drop the positions of files that are gone, and return what was lost."""
        if not self._earlier:
            return []
        again = find_files(self._pattern, self._since)
        if again.identities != findings.identities:  # rotation is under way
            return []
        is_clear = not (findings.missing or self._unreadable or self.waits)
        if not is_clear and len(self._now) + len(self._earlier) <= MAX_FILES:
            return []
        gone, self._earlier = self._earlier, []
        doubtful = [known for known in gone if not known.finished or self._is_truncated(known)]
        return [
            _report_loss(known, truncated=self._is_truncated(known))
            for known in doubtful
            if not _is_content_present(known, again)
        ]

    def _is_truncated(self, known: FilePosition) -> bool:
        """Return whether the file still exists under its name with other content."""
        place = known.state.identity, known.state.path
        return any((now.state.identity, now.state.path) == place for now in self._now)


def _is_content_present(known: FilePosition, findings: FileListing) -> bool:
    for found in findings.files:
        try:
            with OpenFile(found.state.path) as opened:
                if opened.holds(known):
                    return True
        except OSError:
            continue
    return False


def _report_skipped(known: FilePosition) -> Covered:
    """Report a file that is too old for a first read."""
    written = datetime.fromtimestamp(known.state.modified / 1e9, UTC)
    reason = _TOO_OLD.format(written.isoformat(timespec="seconds"))
    return Covered(source=known.state.path, start=0, end=known.offset, passed_over=reason)


def _report_damage(opened: OpenFile, lines: LineStream) -> Covered:
    """Report the unreadable rest of a compressed file."""
    lost = _DAMAGED.format(opened.damage)
    return Covered(source=opened.state.path, start=lines.end, end=lines.end, lost=lost)


def _report_loss(known: FilePosition, *, truncated: bool) -> Covered:
    """Report the unread content of a file that no longer exists, as far as its size is known."""
    compressed = known.state.path.endswith(".gz")
    return Covered(
        source=known.state.path,
        start=known.offset,
        end=known.offset if compressed else max(known.offset, known.state.size),
        lost=_TRUNCATED if truncated else _VANISHED,
    )

"""The course of one read: which file is which, what is new in each, and what was lost."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from tocsin import Covered, Page, Refused, TryLater
from tocsin_connectors.siem.files.batch import Batch, Parser
from tocsin_connectors.siem.files.finding import FileState, Findings, Found, find
from tocsin_connectors.siem.files.known import Known, encode
from tocsin_connectors.siem.files.lines import Lines
from tocsin_connectors.siem.files.opened import OpenFile

MOST_FILES = 1000
SETTLED = timedelta(minutes=1)
"""How long nothing must have been written before a file counts as complete."""

_DAMAGED = "the compressed file is damaged or incomplete ({}): its rest cannot be read"
_TRUNCATED = (
    "the file was truncated or replaced and no copy of it was found:"
    " whatever was written after this byte and before that is lost, and how much is not known"
)
_PASSED_OVER = "passed over at the first read: last written {}, longer ago than first_fetch allows"
_VANISHED = "the file vanished before its rest was read, and no copy of it was found"


class Following:
    """One read of all files. Everything in it blocks: it runs in a thread."""

    def __init__(self, pattern: str, parser: Parser, known: list[Known], until: datetime) -> None:
        self._pattern = pattern
        self._parser = parser
        self._until = until
        self._earlier = known
        """What earlier reads remember and this one has not come to yet."""
        self._now: list[Known] = []
        """What this read remembers."""
        self._unreadable: list[str] = []
        self._waits = False

    def pages(self, skip_before: datetime | None) -> Generator[Page, None, None]:
        """Yield what is new; files last written before `skip_before` are taken as read.

        Raises `TryLater` at the end if something was missing or could not be read, and `Refused`
        where there are more files than can be followed.
        """
        findings = find(self._pattern)
        if len(findings.files) > MOST_FILES:
            count = len(findings.files)
            raise Refused(f"{self._pattern}: {count} files; at most {MOST_FILES} can be followed")
        stored = self._position()
        for page in self._read_all(findings, skip_before):
            stored = dict(page.next_position)
            yield page
        if self._position() != stored:
            yield Page(next_position=self._position())
        if problems := findings.missing + self._unreadable:
            raise TryLater("; ".join(problems))

    def _position(self) -> dict[str, Any]:
        return encode([*self._now, *self._earlier])

    def _read_all(self, findings: Findings, skip_before: datetime | None) -> Iterator[Page]:
        for found in findings.files:
            try:
                yield from self._read(found, skip_before)
            except FileNotFoundError:
                self._leave(found.state)
            except OSError as error:
                self._unreadable.append(f"{found.state.path}: {error.strerror or error}")
                self._leave(found.state)
        if lost := self._settle(findings):
            yield Page(next_position=self._position(), covered=tuple(lost))

    def _leave(self, state: FileState) -> None:
        """Keep what is remembered of a file that this read cannot tell anything about."""
        self._now += [known for known in self._earlier if known.state.identity == state.identity]
        self._earlier = [known for known in self._earlier if known not in self._now]

    def _read(self, found: Found, skip_before: datetime | None) -> Iterator[Page]:
        for known in self._earlier:
            if known.finished and known.state.is_unchanged(found.state):
                self._earlier.remove(known)
                self._now.append(replace(known, state=found.state))
                return
        with OpenFile(found.state.path) as opened:
            if opened.state.identity != found.state.identity:  # rotated since it was found
                self._leave(found.state)
            elif skip_before and _is_older(found.state, skip_before):
                yield self._pass_over(opened.known_at_end())
            else:
                yield from self._recognise(opened, found)

    def _pass_over(self, known: Known) -> Page:
        """Take a file that is too old for a first read as read, and say so in the ledger."""
        self._now.append(known)
        written = datetime.fromtimestamp(known.state.modified / 1e9, UTC)
        lost = _PASSED_OVER.format(written.isoformat(timespec="seconds"))
        passed = Covered(source=known.state.path, start=0, end=known.offset, lost=lost)
        return Page(next_position=self._position(), covered=(passed,))

    def _recognise(self, opened: OpenFile, found: Found) -> Iterator[Page]:
        candidates = sorted(self._now + self._earlier, key=lambda known: -known.offset)
        best = next((known for known in candidates if opened.holds(known)), None)
        if self._may_be_growing(opened, found, candidates, best):
            self._waits = True
            self._leave(found.state)
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
        yield from self._read_on(opened, lines)

    def _may_be_growing(
        self, opened: OpenFile, found: Found, candidates: list[Known], best: Known | None
    ) -> bool:
        """Whether this is perhaps a copy in the making, which only its end will tell."""
        is_known = best is not None and best.state.identity == found.state.identity
        if is_known or found.live or not self._is_fresh(found.state):
            return False
        offset = best.offset if best else 0
        longer = (known for known in candidates if known.offset > offset)
        return any(opened.may_grow_into(known) for known in longer)

    def _read_on(self, opened: OpenFile, lines: Lines) -> Iterator[Page]:
        place = len(self._now)
        more = True
        while more:
            batch = Batch(self._parser, opened.state.path, lines)
            more = batch.fill()
            is_damaged = not more and self._is_damaged(opened)
            finished = not more and (is_damaged or not (lines.has_rest or opened.damage))
            self._now[place:] = [opened.known_after(lines, finished=finished)]
            lost = _damage(opened, lines) if is_damaged else None
            if page := batch.page(self._position(), lost):
                yield page

    def _is_damaged(self, opened: OpenFile) -> bool:
        """Whether nobody is going to complete the compressed content that ended too early."""
        return opened.damage is not None and not self._is_fresh(opened.state)

    def _is_fresh(self, state: FileState) -> bool:
        return not _is_older(state, self._until - SETTLED)

    def _settle(self, findings: Findings) -> list[Covered]:
        """Forget the files that are gone, and return what was lost with them."""
        if not self._earlier:
            return []
        again = find(self._pattern)
        if again.identities != findings.identities:  # rotation is under way
            return []
        is_clear = not (findings.missing or self._unreadable or self._waits)
        if not is_clear and len(self._now) + len(self._earlier) <= MOST_FILES:
            return []
        gone, self._earlier = self._earlier, []
        doubtful = [known for known in gone if not known.finished or self._is_truncated(known)]
        return [self._loss(known) for known in doubtful if not _is_held(known, again)]

    def _is_truncated(self, known: Known) -> bool:
        """Whether the file is still there, under its name, and holds something else."""
        place = known.state.identity, known.state.path
        return any((now.state.identity, now.state.path) == place for now in self._now)

    def _loss(self, known: Known) -> Covered:
        compressed = known.state.path.endswith(".gz")
        return Covered(
            source=known.state.path,
            start=known.offset,
            end=known.offset if compressed else max(known.offset, known.state.size),
            lost=_TRUNCATED if self._is_truncated(known) else _VANISHED,
        )


def _is_older(state: FileState, moment: datetime) -> bool:
    return state.modified < moment.timestamp() * 1e9


def _damage(opened: OpenFile, lines: Lines) -> Covered:
    lost = _DAMAGED.format(opened.damage)
    return Covered(source=opened.state.path, start=lines.end, end=lines.end, lost=lost)


def _is_held(known: Known, findings: Findings) -> bool:
    for found in findings.files:
        try:
            with OpenFile(found.state.path) as opened:
                if opened.holds(known):
                    return True
        except OSError:
            continue
    return False

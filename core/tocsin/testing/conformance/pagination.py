"""Rules for pagination."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta

from tocsin.errors import PluginFailure
from tocsin.model import Json
from tocsin.testing.conformance.http_harness import HttpConformance, HttpHarness
from tocsin.testing.conformance.record_shapes import Path, iter_paths, value_at
from tocsin.testing.conformance.rules import does_not_apply, expect, expect_failure, rule
from tocsin.testing.faults import Fault
from tocsin.testing.siem import Case

PAGE = 3
SPREAD = timedelta(minutes=4)
"""So far apart that an overlap does not make good what a page has missed."""
_MOST_REQUESTS = 100
_MANY_PAGES = 12


class PaginationRules(HttpConformance):
    """How a list of several pages is read."""

    @rule
    async def test_every_page_is_read(self) -> None:
        """What is on the second page and on the last arrives.

        A backlog after a night of silence has hundreds of pages.
        """
        async with self.harness(most_per_page=PAGE) as lab:
            lab.put_many(_MANY_PAGES * PAGE + 1)
            await lab.arrive()
            lab.expect_all()

    @rule
    async def test_a_short_page_is_not_the_last(self) -> None:
        """A page with fewer records than the one before is not the last, unless the SIEM says so.

        SIEMs filter after they have cut the page, and lower their limits when they are busy.
        """
        async with self.harness(most_per_page=PAGE) as lab:
            lab.put_many(4 * PAGE)
            lab.settle()

            def limit() -> None:
                lab.limit_pages(1 if len(lab.store.incidents) == PAGE else PAGE)

            await lab.reader.read(after_each=limit)
            lab.expect_all()

    @rule
    async def test_a_page_that_brings_nothing_is_not_the_last(self) -> None:
        """A page of which every record is rejected is not the last.

        Whoever counts what is left of a page stops there, and loses all that comes behind it.
        """
        async with self.harness(most_per_page=PAGE) as lab:
            lab.put_many(PAGE)
            lab.put_many(PAGE, malformed=True)
            lab.put_many(PAGE)
            await lab.arrive()
            lab.expect_all()

    @rule
    async def test_one_moment_may_have_several_pages(self) -> None:
        """What changed at one and the same moment arrives, be it on several pages.

        A rule that fires for a whole network stamps hundreds of incidents alike, and a time alone
        does not tell which of them were read.
        """
        async with self.harness(most_per_page=PAGE) as lab:
            for _ in range(3 * PAGE + 1):
                lab.put()
            await lab.arrive()
            lab.expect_all()

    @rule
    async def test_numbers_need_not_be_in_the_order_of_time(self) -> None:
        """An incident arrives though its number is lower than those that were read before.

        SIEMs give out numbers in blocks, and by several machines: numbers are no position.
        """
        async with self.harness(most_per_page=PAGE) as lab:
            for number in (2000, 1998, 1999, 1500, 2001, 17):
                lab.put(number=number)
                lab.clock.advance(minutes=1)
            await lab.arrive()
            lab.put(number=16)
            await lab.arrive()
            lab.expect_all()

    @rule
    async def test_what_changes_while_pages_are_read_arrives(self) -> None:
        """An incident that changes while the pages are read arrives with its latest version.

        It leaves its place in the list: read once with the old words, or not at all, it stays so.
        """
        async with self.harness(most_per_page=PAGE) as lab:
            cases = lab.put_many(3 * PAGE)
            await _read_while(lab, lambda: _change(lab, cases[-1]))
            lab.incident(cases[-1])
            lab.expect_all()

    @rule
    async def test_what_moves_behind_a_page_shifts_nothing(self) -> None:
        """When incidents that were read change while the next page is asked for, none is skipped.

        They leave the list, all behind them moves up, and an offset then points too far.
        """
        async with self.harness(most_per_page=PAGE) as lab:
            cases = lab.put_many(4 * PAGE, every=SPREAD)
            await _read_while(lab, lambda: _change(lab, *cases[:2]))
            for case in cases[PAGE:]:
                lab.incident(case)

    @rule
    async def test_a_read_ends_though_the_siem_never_rests(self) -> None:
        """A read ends though something new happens with each request.

        The end of what is asked for stays where it was when the read began; otherwise one busy
        stream is read for ever, and nothing else is.
        """
        async with self.harness(most_per_page=PAGE) as lab:
            lab.put_many(2 * PAGE)
            lab.settle()

            def happen() -> None:
                lab.clock.advance(minutes=1)
                lab.put_many(PAGE)

            lab.simulator.before_each = happen
            already = lab.http.count
            await lab.reader.read(after_each=lambda: _expect_few(lab, already))

    @rule
    async def test_the_same_page_again_ends_the_read(self) -> None:
        """A page that leads to itself ends the read with an error, and is recovered from.

        A SIEM that did so has cost its users hundreds of thousands of requests a day.
        """
        async with self.harness(most_per_page=PAGE) as lab:
            lab.put_many(3 * PAGE)
            lab.settle()
            lab.simulator.fail(Fault.REPEATED_PAGE, times=_MOST_REQUESTS)
            already = lab.http.count
            error = await lab.reader.failure()
            if lab.simulator.faults_left == _MOST_REQUESTS:
                does_not_apply("it does not page by tokens")
            _expect_few(lab, already)
            expect_failure(error, PluginFailure)
            lab.simulator.recover()
            await lab.persist()
            lab.expect_all()

    @rule
    async def test_a_missing_page_token_is_not_the_end(self) -> None:
        """An answer without the member that leads to the next page raises, and nothing is missed.

        A vendor who renames it would otherwise cut every list after its first page.
        """
        async with self.harness(most_per_page=PAGE) as lab:
            member = await _find_next_page_member(lab)
            lab.put_many(3 * PAGE, every=SPREAD)
            lab.settle()
            as_it_was = lab.alter_answer
            lab.alter_answer = _renamed(member)
            expect_failure(await lab.reader.failure(), PluginFailure)
            lab.alter_answer = as_it_was
            await lab.persist()
            lab.expect_all()

    @rule
    async def test_an_expired_page_token_loses_nothing(self) -> None:
        """Reading goes on where the page token that was stored has expired.

        They live for minutes. After a pause longer than that the window is read anew; or it would
        fail the same way for ever.
        """
        async with self.harness(most_per_page=PAGE) as lab:
            lab.put_many(4 * PAGE, every=SPREAD)
            await _stop_within(lab)
            lab.clock.advance(seconds=2 * lab.simulator.page_token_lifetime.total_seconds())
            await lab.restart()
            await lab.persist()
            lab.expect_all()

    @rule
    async def test_an_error_on_a_later_page_holds_the_position(self) -> None:
        """An error on a page ends the read there, and the next one goes on from there.

        Passing over the page, or calling the window done, loses what is on it and behind it.
        """
        for fault in (Fault.UNAVAILABLE, Fault.THROTTLED):
            async with self.harness(most_per_page=PAGE) as lab:
                lab.put_many(3 * PAGE, every=SPREAD)
                await _stop_within(lab)
                lab.simulator.fail(fault, times=_MOST_REQUESTS)
                expect_failure(await lab.reader.failure(), PluginFailure)
                lab.simulator.recover()
                await lab.persist()
                lab.expect_all()


async def _find_next_page_member(lab: HttpHarness) -> Path:
    """Return where the vendor writes the next page's token; skip where it need not be written."""
    answers: list[Json] = []

    def keep(content: Json) -> Json:
        answers.append(content)
        return content

    as_it_was, lab.alter_answer = lab.alter_answer, keep
    lab.put_many(2 * PAGE)
    await lab.arrive()
    lab.alter_answer = as_it_was
    for answer in answers:
        for *way, name in iter_paths(answer):
            holder = value_at(answer, tuple(way))
            if isinstance(holder[name], str) and lab.simulator.has_page_token(holder[name]):
                others = (value_at(answer, tuple(way)) for answer in answers)
                _expect_always(name, holder, others)
                return (*way, name)
    return does_not_apply("it does not page by tokens")


def _expect_always(name: str | int, holder: dict[str, Json], others: Iterable[Json]) -> None:
    """Skip the rule where the SIEM leaves out a member, namely on the last page."""
    rest = holder.keys() - {name}
    alike = (other for other in others if isinstance(other, dict) and other.keys() >= rest)
    if not all(name in it for it in alike):
        does_not_apply(f"the simulator leaves out `{name}` on the last page")


def _renamed(path: Path) -> Callable[[Json], Json]:
    *way, name = path

    def change(content: Json) -> Json:
        holder = value_at(content, tuple(way))
        if isinstance(holder, dict) and name in holder:
            holder["x_renamed"] = holder.pop(name)
        return content

    return change


async def _read_while(lab: HttpHarness, action: Callable[[], None]) -> None:
    """Read to the end, with something happening behind the first page that brings anything."""
    waiting = [action]

    def act_once() -> None:
        if lab.store.incidents and waiting:
            waiting.pop()()

    lab.settle()
    await lab.reader.read(after_each=act_once)
    await lab.arrive()


def _change(lab: HttpHarness, *cases: Case) -> None:
    for case in cases:
        lab.change(case, title="New title")


async def _stop_within(lab: HttpHarness) -> None:
    """Read until there is something of the list, but not all of it."""
    lab.settle()
    for _ in range(_MANY_PAGES):
        await lab.reader.read(1)
        if lab.store.incidents:
            return
    expect(kept=False, seen=f"nothing came of {_MANY_PAGES} pages")


def _expect_few(lab: HttpHarness, already: int) -> None:
    count = lab.http.count - already
    expect(count <= _MOST_REQUESTS, f"{count} requests within one read")

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
"""Far enough apart that an overlap does not hide what a page misses."""
_MOST_REQUESTS = 100
_MANY_PAGES = 12


class PaginationRules(HttpConformance):
    """Rules for lists of several pages."""

    @rule
    async def test_every_page_is_read(self) -> None:
        """The incidents on every page arrive, including those on the second and the last page.

        After an outage, the backlog can have hundreds of pages.
        """
        async with self.harness(most_per_page=PAGE) as harness:
            harness.put_many(_MANY_PAGES * PAGE + 1)
            await harness.arrive()
            harness.expect_all()

    @rule
    async def test_a_short_page_is_not_the_last(self) -> None:
        """A page with fewer records than requested does not count as the last page, unless the SIEM
        states that this page is the last one.

        Some SIEMs filter records only after they have split them into pages, and some return
        smaller pages under load.
        """
        async with self.harness(most_per_page=PAGE) as harness:
            harness.put_many(4 * PAGE)
            harness.settle()

            def limit() -> None:
                harness.limit_pages(1 if len(harness.store.incidents) == PAGE else PAGE)

            await harness.reader.read(after_each=limit)
            harness.expect_all()

    @rule
    async def test_a_page_without_valid_records_is_not_the_last(self) -> None:
        """A page on which every record is rejected does not count as the last page.

        If the provider counted only accepted records, the read would end with this page, and all
        later pages would be lost.
        """
        async with self.harness(most_per_page=PAGE) as harness:
            harness.put_many(PAGE)
            harness.put_many(PAGE, malformed=True)
            harness.put_many(PAGE)
            await harness.arrive()
            harness.expect_all()

    @rule
    async def test_equal_timestamps_may_span_pages(self) -> None:
        """All incidents that changed at the same time arrive, even if they fill several pages.

        A detection rule can create hundreds of incidents with the same timestamp, so a timestamp
        alone is not enough to continue from.
        """
        async with self.harness(most_per_page=PAGE) as harness:
            for _ in range(3 * PAGE + 1):
                harness.put()
            await harness.arrive()
            harness.expect_all()

    @rule
    async def test_numbers_need_not_follow_time(self) -> None:
        """An incident arrives even if its number is lower than the numbers of earlier incidents.

        If a SIEM has several servers, each server assigns numbers from its own block, so a later
        incident can have a lower number.
        """
        async with self.harness(most_per_page=PAGE) as harness:
            for number in (2000, 1998, 1999, 1500, 2001, 17):
                harness.put(number=number)
                harness.clock.advance(minutes=1)
            await harness.arrive()
            harness.put(number=16)
            await harness.arrive()
            harness.expect_all()

    @rule
    async def test_changes_during_pagination_arrive(self) -> None:
        """An incident that changes during pagination arrives in its latest version.

        The incident moves within the list during the read, so the provider could read its old
        version or miss the incident.
        """
        async with self.harness(most_per_page=PAGE) as harness:
            cases = harness.put_many(3 * PAGE)
            await _read_while(harness, lambda: _change(harness, cases[-1]))
            harness.incident(cases[-1])
            harness.expect_all()

    @rule
    async def test_moved_incidents_skip_no_others(self) -> None:
        """No incident is skipped when incidents on earlier pages change before the next page is
        requested.

        When the changed incidents leave the list, all later incidents move up, and a page that
        starts at an offset skips some of them.
        """
        async with self.harness(most_per_page=PAGE) as harness:
            cases = harness.put_many(4 * PAGE, every=SPREAD)
            await _read_while(harness, lambda: _change(harness, *cases[:2]))
            for case in cases[PAGE:]:
                harness.incident(case)

    @rule
    async def test_a_read_ends_despite_constant_changes(self) -> None:
        """A read ends even if new incidents appear with each request.

        Otherwise, reading a busy stream would never end. Set the end of the window once, when the
        read starts.
        """
        async with self.harness(most_per_page=PAGE) as harness:
            harness.put_many(2 * PAGE)
            harness.settle()

            def happen() -> None:
                harness.clock.advance(minutes=1)
                harness.put_many(PAGE)

            harness.simulator.before_each = happen
            already = harness.http.count
            await harness.reader.read(after_each=lambda: _expect_few(harness, already))

    @rule
    async def test_a_repeated_page_ends_the_read(self) -> None:
        """A page that links to itself ends the read with an error, and no data is missing after the
        SIEM recovers.

        Otherwise, the read would never end. One SIEM had this bug, and its users' software sent it
        hundreds of thousands of requests a day.
        """
        async with self.harness(most_per_page=PAGE) as harness:
            harness.put_many(3 * PAGE)
            harness.settle()
            harness.simulator.fail(Fault.REPEATED_PAGE, times=_MOST_REQUESTS)
            already = harness.http.count
            error = await harness.reader.failure()
            if len(harness.simulator.faults_left) == _MOST_REQUESTS:
                does_not_apply("the provider does not use page tokens")
            _expect_few(harness, already)
            expect_failure(error, PluginFailure)
            harness.simulator.recover()
            await harness.persist()
            harness.expect_all()

    @rule
    async def test_a_missing_page_token_is_not_the_end(self) -> None:
        """A response without the member for the next page raises an error, and no data is lost.

        Otherwise, if the vendor renamed this member, every list would seem to end after its first
        page.
        """
        async with self.harness(most_per_page=PAGE) as harness:
            member = await _find_next_page_member(harness)
            harness.put_many(3 * PAGE, every=SPREAD)
            harness.settle()
            as_it_was = harness.alter_answer
            harness.alter_answer = _renamed(member)
            expect_failure(await harness.reader.failure(), PluginFailure)
            harness.alter_answer = as_it_was
            await harness.persist()
            harness.expect_all()

    @rule
    async def test_an_expired_page_token_loses_nothing(self) -> None:
        """Reads continue even if a stored page token has expired.

        Page tokens are valid only for some minutes. After a longer pause, the provider must read
        the window again.
        """
        async with self.harness(most_per_page=PAGE) as harness:
            harness.put_many(4 * PAGE, every=SPREAD)
            await _stop_within(harness)
            harness.clock.advance(seconds=2 * harness.simulator.page_token_lifetime.total_seconds())
            await harness.restart()
            await harness.persist()
            harness.expect_all()

    @rule
    async def test_an_error_on_a_later_page_holds_the_position(self) -> None:
        """An error on a page ends the read, and the next read continues from this page.

        If the read skipped the page or ended the window, incidents would be lost.
        """
        for fault in (Fault.UNAVAILABLE, Fault.THROTTLED):
            async with self.harness(most_per_page=PAGE) as harness:
                harness.put_many(3 * PAGE, every=SPREAD)
                await _stop_within(harness)
                harness.simulator.fail(fault, times=_MOST_REQUESTS)
                expect_failure(await harness.reader.failure(), PluginFailure)
                harness.simulator.recover()
                await harness.persist()
                harness.expect_all()


async def _find_next_page_member(harness: HttpHarness) -> Path:
    """Return the path of the next page token in a response; skip the rule if there is none."""
    answers: list[Json] = []

    def keep(content: Json) -> Json:
        answers.append(content)
        return content

    as_it_was, harness.alter_answer = harness.alter_answer, keep
    harness.put_many(2 * PAGE)
    await harness.arrive()
    harness.alter_answer = as_it_was
    for answer in answers:
        for *way, name in iter_paths(answer):
            holder = value_at(answer, tuple(way))
            if isinstance(holder[name], str) and harness.simulator.has_page_token(holder[name]):
                others = (value_at(answer, tuple(way)) for answer in answers)
                _expect_always(name, holder, others)
                return (*way, name)
    return does_not_apply("the provider does not use page tokens")


def _expect_always(name: str | int, holder: dict[str, Json], others: Iterable[Json]) -> None:
    """Skip the rule if the SIEM omits a member, for example on the last page."""
    rest = holder.keys() - {name}
    alike = (other for other in others if isinstance(other, dict) and other.keys() >= rest)
    if not all(name in other for other in alike):
        does_not_apply(f"the simulator omits `{name}` on the last page")


def _renamed(path: Path) -> Callable[[Json], Json]:
    *way, name = path

    def change(content: Json) -> Json:
        holder = value_at(content, tuple(way))
        if isinstance(holder, dict) and name in holder:
            holder["x_renamed"] = holder.pop(name)
        return content

    return change


async def _read_while(harness: HttpHarness, action: Callable[[], None]) -> None:
    """Read to the end, and run an action after the first page with incidents."""
    waiting = [action]

    def act_once() -> None:
        if harness.store.incidents and waiting:
            waiting.pop()()

    harness.settle()
    await harness.reader.read(after_each=act_once)
    await harness.arrive()


def _change(harness: HttpHarness, *cases: Case) -> None:
    for case in cases:
        harness.change(case, title="New title")


async def _stop_within(harness: HttpHarness) -> None:
    """Read until a part of the list has arrived."""
    harness.settle()
    for _ in range(_MANY_PAGES):
        await harness.reader.read(1)
        if harness.store.incidents:
            return
    expect(kept=False, seen=f"no incident on {_MANY_PAGES} pages")


def _expect_few(harness: HttpHarness, already: int) -> None:
    count = harness.http.count - already
    expect(count <= _MOST_REQUESTS, f"{count} requests within one read")

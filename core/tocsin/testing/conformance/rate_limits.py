"""Rules for request rates, network access, secrets and cancellation."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tocsin.errors import PluginFailure
from tocsin.testing.conformance.http_harness import HttpConformance, HttpHarness
from tocsin.testing.conformance.pagination import PAGE
from tocsin.testing.conformance.rules import describe_error, expect, rule
from tocsin.testing.conformance.settings import iter_secrets
from tocsin.testing.faults import Fault

_FEW = 12
_MOST_FOR_EACH = 4
_PATIENCE = 2
_FAULTS = (Fault.ERROR, Fault.UNAUTHORIZED, Fault.UNAUTHORIZED, Fault.CUT, Fault.LOGIN_PAGE)


class RateLimitRules(HttpConformance):
    """How a provider behaves towards its SIEM and its operator."""

    @rule
    async def test_an_idle_read_makes_few_requests(self) -> None:
        """A read that finds nothing new makes a dozen requests at most.

        It is made once a minute, day and night.
        """
        async with self.harness() as lab:
            lab.put_many(PAGE)
            await lab.arrive()
            lab.clock.advance(minutes=1)
            already = lab.http.count
            await lab.reader.read()
            count = lab.http.count - already
            expect(count <= _FEW, f"{count} requests")

    @rule
    async def test_requests_are_in_proportion(self) -> None:
        """A read makes no more than a few requests for each incident that it brings.

        SIEMs count them, and shut out those who make too many.
        """
        async with self.harness() as lab:
            await lab.arrive()
            count = len(lab.put_many(30))
            already = lab.http.count
            await lab.arrive()
            requests = lab.http.count - already
            most = _FEW + _MOST_FOR_EACH * count
            expect(requests <= most, f"{requests} requests for {count} incidents")

    @rule
    async def test_only_the_guarded_client_is_used(self) -> None:
        """Every request goes through `tools.http`.

        Any other way to the network is neither bounded nor kept from private addresses.
        """
        async with self.harness() as lab:
            lab.put()
            await lab.arrive()
            await lab.provider.check()
            seen, made = len(lab.simulator.requests), lab.http.count
            expect(seen == made, f"{seen} requests came, {made} of them by way of `tools.http`")

    @rule
    async def test_no_secret_is_told(self) -> None:
        """No secret stands in an error, a log or a position.

        All three are shown to people, and kept.
        """
        async with self.harness() as lab:
            with _logged_text() as lines:
                told = [*await _failures(lab), *lines, *map(str, lab.logged.entries)]
            told += [str(position) for position in lab.store.positions.values()]
            for name, secret in iter_secrets(lab.provider):
                places = [text for text in told if secret in text]
                expect(not places, f"the secret `{name}`: {places[:1]}")

    @rule
    async def test_a_read_can_be_cancelled(self) -> None:
        """A read that waits for the SIEM ends at once when it is cancelled, and can be made again.

        A process that is to end waits for it otherwise, until it is killed.
        """
        async with self.harness() as lab:
            lab.put()
            lab.settle()
            arrived = asyncio.Event()
            lab.simulator.before_each = arrived.set
            lab.simulator.fail(Fault.SLOW)
            before = asyncio.all_tasks()
            task = asyncio.create_task(lab.reader.read())
            await arrived.wait()
            task.cancel()
            await asyncio.wait([task], timeout=_PATIENCE)
            expect(task.done(), f"it went on for {_PATIENCE} seconds")
            expect(task.cancelled(), f"cancelled, {_wait_for_end(task)}")
            _expect_nothing_left(before)
            await lab.persist()
            lab.expect_all()

    @rule
    async def test_a_read_that_is_left_leaves_nothing(self) -> None:
        """A read that is left after a page leaves no task behind.

        What goes on by itself reads against the next read.
        """
        async with self.harness(most_per_page=PAGE) as lab:
            lab.put_many(3 * PAGE)
            lab.settle()
            before = asyncio.all_tasks()
            for _ in range(3):
                await lab.reader.read(1)
            _expect_nothing_left(before)


async def _failures(lab: HttpHarness) -> list[str]:
    """Return what is said while one thing after the other goes wrong."""
    told = []
    for fault in _FAULTS:
        lab.put()
        lab.settle()
        lab.simulator.fail(fault)
        told.append(repr(await lab.reader.failure()))
    await lab.hang_up()
    told.append(repr(await lab.reader.failure()))
    try:
        told.append(repr(await lab.provider.check()))
    except PluginFailure as error:
        told.append(repr(error))
    return told


def _wait_for_end(task: asyncio.Task[Any]) -> str:
    return "" if task.cancelled() else describe_error(task.exception())


def _expect_nothing_left(before: set[asyncio.Task[Any]]) -> None:
    left = {task for task in asyncio.all_tasks() - before if _belongs_to_provider(task)}
    expect(not left, f"{len(left)} tasks go on: {left}")


def _belongs_to_provider(task: asyncio.Task[Any]) -> bool:
    """Whether a task was begun by the provider, and not by the simulator's server."""
    module = getattr(task.get_coro(), "__module__", "") or ""
    code = getattr(task.get_coro(), "cr_code", None)
    return not task.done() and "aiohttp" not in (module + (code.co_filename if code else ""))


@contextmanager
def _logged_text() -> Iterator[list[str]]:
    """Collect what is logged by way of the standard library."""
    lines: list[str] = []

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(record.getMessage())

    collector, root = Collector(), logging.getLogger()
    root.addHandler(collector)
    try:
        yield lines
    finally:
        root.removeHandler(collector)

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
_TURNS = 20
"""The turns of the event loop until Python has closed a generator that another one wraps."""
_FAULTS = (Fault.ERROR, Fault.UNAUTHORIZED, Fault.UNAUTHORIZED, Fault.CUT, Fault.LOGIN_PAGE)


class RateLimitRules(HttpConformance):
    """Rules for a provider's use of the SIEM, the network and secrets."""

    @rule
    async def test_an_idle_read_makes_few_requests(self) -> None:
        """A read that finds nothing new sends at most twelve requests.

        By default, Tocsin reads once a minute, day and night.
        """
        async with self.harness() as harness:
            harness.put_many(PAGE)
            await harness.arrive()
            harness.clock.advance(minutes=1)
            already = harness.http.count
            await harness.reader.read()
            count = harness.http.count - already
            expect(count <= _FEW, f"{count} requests")

    @rule
    async def test_requests_are_in_proportion(self) -> None:
        """A read sends only a few requests for each incident.

        SIEMs count requests and block clients that send too many.
        """
        async with self.harness() as harness:
            await harness.arrive()
            count = len(harness.put_many(30))
            already = harness.http.count
            await harness.arrive()
            requests = harness.http.count - already
            most = _FEW + _MOST_FOR_EACH * count
            expect(requests <= most, f"{requests} requests for {count} incidents")

    @rule
    async def test_only_the_guarded_client_is_used(self) -> None:
        """Every request goes through `tools.http`.

        Connections that bypass `tools.http` have no limits and can reach private addresses.
        """
        async with self.harness() as harness:
            harness.put()
            await harness.arrive()
            await harness.provider.check()
            seen, made = len(harness.simulator.requests), harness.http.count
            expect(seen == made, f"{seen} requests arrived, {made} of them through `tools.http`")

    @rule
    async def test_no_secret_is_exposed(self) -> None:
        """No secret appears in errors, logs or positions.

        Errors, logs and positions are stored and shown to people.
        """
        async with self.harness() as harness:
            with _logged_text() as lines:
                texts = [*await _failures(harness), *lines, *map(str, harness.logged.entries)]
            texts += [str(position) for position in harness.store.positions.values()]
            for name, secret in iter_secrets(harness.provider):
                places = [text for text in texts if secret in text]
                expect(not places, f"the secret `{name}`: {places[:1]}")

    @rule
    async def test_a_read_can_be_cancelled(self) -> None:
        """A read that is waiting for the SIEM stops immediately when canceled and can be repeated.

        Otherwise, a process that shuts down would wait for the read and finally be killed.
        """
        async with self.harness() as harness:
            harness.put()
            harness.settle()
            arrived = asyncio.Event()
            harness.simulator.before_each = arrived.set
            harness.simulator.fail(Fault.SLOW)
            before = asyncio.all_tasks()
            task = asyncio.create_task(harness.reader.read())
            await arrived.wait()
            task.cancel()
            await asyncio.wait([task], timeout=_PATIENCE)
            expect(task.done(), f"still running after {_PATIENCE} seconds")
            expect(task.cancelled(), f"cancelled, {_wait_for_end(task)}")
            await _expect_nothing_left(before)
            await harness.persist()
            harness.expect_all()

    @rule
    async def test_an_abandoned_read_leaves_no_task(self) -> None:
        """A read that is abandoned after a page leaves no task behind.

        A leftover task would compete with the next read.
        """
        async with self.harness(most_per_page=PAGE) as harness:
            harness.put_many(3 * PAGE)
            harness.settle()
            before = asyncio.all_tasks()
            for _ in range(3):
                await harness.reader.read(1)
            await _expect_nothing_left(before)


async def _failures(harness: HttpHarness) -> list[str]:
    """Return the error texts of several faults, one after the other."""
    failures = []
    for fault in _FAULTS:
        harness.put()
        harness.settle()
        harness.simulator.fail(fault)
        failures.append(repr(await harness.reader.failure()))
    await harness.hang_up()
    failures.append(repr(await harness.reader.failure()))
    try:
        failures.append(repr(await harness.provider.check()))
    except PluginFailure as error:
        failures.append(repr(error))
    return failures


def _wait_for_end(task: asyncio.Task[Any]) -> str:
    return "" if task.cancelled() else describe_error(task.exception())


async def _expect_nothing_left(before: set[asyncio.Task[Any]]) -> None:
    for _ in range(_TURNS):
        left = {task for task in asyncio.all_tasks() - before if _belongs_to_provider(task)}
        if not left:
            return
        await asyncio.sleep(0)
    expect(not left, f"{len(left)} tasks still running: {left}")


def _belongs_to_provider(task: asyncio.Task[Any]) -> bool:
    """Return whether a task was started by the provider, and not by the simulator's server."""
    module = getattr(task.get_coro(), "__module__", "") or ""
    code = getattr(task.get_coro(), "cr_code", None)
    return not task.done() and "aiohttp" not in (module + (code.co_filename if code else ""))


@contextmanager
def _logged_text() -> Iterator[list[str]]:
    """Collect the messages that are logged through the standard library."""
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

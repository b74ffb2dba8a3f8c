"""Reading one provider for ever: each page is stored before the next one is asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from datetime import timedelta

import structlog
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from tocsin.clock import Clock, isoformat
from tocsin.errors import CredentialsRefused, Refused, TocsinError, TryLater
from tocsin.events import Bell
from tocsin.hookspecs import Provider
from tocsin.incidents.coverage.ledger import Failure, record_failure
from tocsin.incidents.coverage.positions import StreamKey, Superseded, end_first_read, load_position
from tocsin.incidents.storing.alerting import AlertPolicy
from tocsin.incidents.storing.intake import store_page
from tocsin.loops import run_forever, was_cancelled
from tocsin.model import Page
from tocsin.store import Database

LONGEST_PAUSE = timedelta(minutes=15)
MOST_POLLS_MISSED = 20
"""A provider that keeps failing is asked again after so many of its polls, or the pause above."""
_log = structlog.get_logger()


class ProviderSync:
    """The loop of one provider; what goes wrong in it holds up no other."""

    def __init__(
        self, provider: Provider, database: Database, clock: Clock, bell: Bell, public_url: str
    ) -> None:
        self.name = provider.tools.name
        self._provider = provider
        self._database = database
        self._clock = clock
        self._bell = bell
        self._public_url = public_url
        self._failures = 0
        self._failing: set[str] = set()

    async def run(self) -> None:
        """Read the provider until cancelled."""
        await run_forever(self._step, self._clock, "reading a provider", provider=self.name)

    async def _step(self) -> None:
        await self._clock.sleep(await self.read_all())

    async def read_all(self) -> timedelta:
        """Read every stream once, and return how long to wait before the next time."""
        ended = [await self._try(stream) for stream in self._provider.streams()]
        failures = [error for error in ended if error is not None]
        self._failures = self._failures + 1 if failures else 0
        pause = self._pause(failures)
        if failures:
            again_at = isoformat(self._clock.now() + pause)
            _log.warning("a provider is read again later", provider=self.name, again_at=again_at)
        return pause

    def _pause(self, failures: Sequence[BaseException]) -> timedelta:
        poll: timedelta = self._provider.settings.poll_interval
        if not failures:
            return poll
        longest = max(poll, min(poll * MOST_POLLS_MISSED, LONGEST_PAUSE))
        asked = [error.after for error in failures if isinstance(error, TryLater) and error.after]
        backed_off: timedelta = min(poll * 2 ** min(self._failures, 16), longest)
        return max(backed_off, *asked, poll)

    async def _try(self, stream: str) -> BaseException | None:
        """Read one stream, and return what stopped it before its end, if anything did."""
        try:
            await self.read_stream(stream)
        except (Exception, asyncio.CancelledError) as error:
            if was_cancelled():
                raise
            await self._record(stream, error)
            self._failing.add(stream)
            return error
        if stream in self._failing:
            self._failing.remove(stream)
            _log.info("a stream can be read again", provider=self.name, stream=stream)
        return None

    async def read_stream(self, stream: str) -> None:
        """Read one stream up to now, storing page by page."""
        key = StreamKey(self.name, stream)
        position = await self._database.read(load_position, key)
        settings = self._provider.settings
        policy = AlertPolicy(
            self._public_url,
            quiet=settings.quiet_first_fetch and not position.first_read_done,
            on_escalation=settings.alert_on_escalation,
        )
        revision = position.revision
        async with aclosing(
            self._provider.read(stream, position.value, self._clock.now())
        ) as pages:
            async for page in pages:
                await self._store(key, page, revision, policy)
                revision += 1
        if not position.first_read_done:
            await self._database.write(end_first_read, key, self._clock.now())

    async def _store(self, key: StreamKey, page: Page, revision: int, policy: AlertPolicy) -> None:
        now = self._clock.now()
        stored = await self._database.write(
            store_page, key, page, revision=revision, policy=policy, now=now
        )
        if stored.events:
            self._bell.ring()
        self._report(key, page)

    def _report(self, key: StreamKey, page: Page) -> None:
        facts = {"provider": key.provider, "stream": key.stream}
        if page.rejected:
            first = page.rejected[0]
            where = {"source": first.source, "location": first.location, "reason": first.reason}
            _log.warning("records were set aside", count=len(page.rejected), **facts, **where)
        for stretch in page.covered:
            if stretch.lost:
                _log.warning("lost", **facts, source=stretch.source, reason=stretch.lost)

    async def _record(self, stream: str, error: BaseException) -> None:
        outcome, is_bug = _outcome(error)
        told = isinstance(error, TocsinError)
        words = str(getattr(error, "orig", None) or error)
        reason = words if told else f"{type(error).__name__}: {words}"
        facts = {"provider": self.name, "stream": stream, "outcome": outcome, "reason": reason}
        _log.warning("a stream could not be read", **facts, exc_info=error if is_bug else None)
        if isinstance(error, Superseded):
            return
        try:
            await self._database.write(
                record_failure,
                StreamKey(self.name, stream),
                Failure(outcome, reason),
                self._clock.now(),
                goes_on=stream in self._failing,
            )
        except (SQLAlchemyError, OSError) as away:
            _log.warning("the ledger could not be written", provider=self.name, reason=str(away))


def _outcome(error: BaseException) -> tuple[str, bool]:
    """Return the ledger's word for a failure, and whether it is somebody's bug."""
    match error:
        case TryLater() | OSError() | DBAPIError():  # the latter two: something of ours is away
            return "later", False
        case CredentialsRefused():
            return "credentials-refused", False
        case Refused():
            return "refused", False
        case Superseded():
            return "superseded", False
        case _:
            return "failed", True

"""Reading one provider for ever: each page is stored before the next one is asked for."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from datetime import timedelta

import structlog

from tocsin.clock import Clock
from tocsin.errors import CredentialsRefused, Refused, TryLater
from tocsin.events import Bell
from tocsin.hookspecs import Provider
from tocsin.incidents.alerting import AlertPolicy
from tocsin.incidents.intake import store_page
from tocsin.incidents.ledger import record_failure
from tocsin.incidents.positions import StreamKey, Superseded, end_first_read, load_position
from tocsin.loops import run_forever, was_cancelled
from tocsin.model import Page
from tocsin.store import Database
from tocsin.store.text import clean

LONGEST_PAUSE = timedelta(minutes=15)
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

    async def run(self) -> None:
        """Read the provider until cancelled."""
        await run_forever(self._step, self._clock, "reading a provider", provider=self.name)

    async def _step(self) -> None:
        await self._clock.sleep(await self.read_all())

    async def read_all(self) -> timedelta:
        """Read every stream once, and return how long to wait before the next time."""
        pause: timedelta = self._provider.settings.poll_interval
        failures = [
            error for stream in self._provider.streams() if (error := await self._try(stream))
        ]
        self._failures = self._failures + 1 if failures else 0
        if not failures:
            return pause
        asked = [error.after for error in failures if isinstance(error, TryLater) and error.after]
        backed_off: timedelta = min(pause * 2 ** min(self._failures, 16), LONGEST_PAUSE)
        return max(pause, backed_off, *asked)

    async def _try(self, stream: str) -> BaseException | None:
        """Read one stream, and return what stopped it before its end, if anything did."""
        try:
            await self.read_stream(stream)
        except (Exception, asyncio.CancelledError) as error:
            if was_cancelled():
                raise
            await self._record(stream, error)
            return error
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
        _log.debug("page stored", provider=key.provider, stream=key.stream, stored=stored)

    async def _record(self, stream: str, error: BaseException) -> None:
        outcome, is_bug = _outcome(error)
        reason = clean(str(error) if not is_bug else f"{type(error).__name__}: {error}", 1000)
        _log.warning(
            "a stream could not be read",
            provider=self.name,
            stream=stream,
            outcome=outcome,
            reason=reason,
            exc_info=error if is_bug else None,
        )
        if not isinstance(error, Superseded):
            key = StreamKey(self.name, stream)
            try:
                await self._database.write(record_failure, key, outcome, reason, self._clock.now())
            except Exception:  # noqa: BLE001 - the database is away; the pause is kept all the same
                _log.exception("the ledger could not be written", provider=self.name)


def _outcome(error: BaseException) -> tuple[str, bool]:
    """Return the ledger's word for a failure, and whether it is somebody's bug."""
    match error:
        case TryLater():
            return "later", False
        case CredentialsRefused():
            return "credentials-refused", False
        case Refused():
            return "refused", False
        case Superseded():
            return "superseded", False
        case _:
            return "failed", True

"""Reading one provider for ever: each page is stored before the next one is asked for."""

from __future__ import annotations

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
from tocsin.incidents.positions import StreamKey, Superseded, load_position
from tocsin.loops import run_forever
from tocsin.store import Database

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
        failed = False
        for stream in self._provider.streams():
            try:
                await self.read_stream(stream)
            except Exception as error:  # noqa: BLE001 - recorded; it costs only this stream
                failed = True
                await self._record(stream, error)
                pause = max(pause, getattr(error, "after", None) or timedelta(0))
        self._failures = self._failures + 1 if failed else 0
        backed_off = self._provider.settings.poll_interval * 2 ** min(self._failures, 16)
        return max(pause, min(backed_off, LONGEST_PAUSE)) if failed else pause

    async def read_stream(self, stream: str) -> None:
        """Read one stream up to now, storing page by page."""
        key = StreamKey(self.name, stream)
        position = await self._database.read(load_position, key)
        settings = self._provider.settings
        policy = AlertPolicy(
            self._public_url,
            quiet=settings.quiet_first_fetch and position.value is None,
            on_escalation=settings.alert_on_escalation,
        )
        pages = self._provider.read(stream, position.value, self._clock.now())
        revision = position.revision
        async with aclosing(pages):  # type: ignore[type-var]
            async for page in pages:
                stored = await self._database.write(
                    store_page,
                    key,
                    page,
                    revision=revision,
                    policy=policy,
                    now=self._clock.now(),
                )
                revision += 1
                if stored.events:
                    self._bell.ring()
                _log.debug("page stored", provider=self.name, stream=stream, stored=stored)

    async def _record(self, stream: str, error: Exception) -> None:
        outcome, is_bug = _judge(error)
        reason = str(error) if not is_bug else f"{type(error).__name__}: {error}"
        _log.warning(
            "a stream could not be read",
            provider=self.name,
            stream=stream,
            outcome=outcome,
            reason=reason,
            exc_info=is_bug,
        )
        if not isinstance(error, Superseded):
            key = StreamKey(self.name, stream)
            await self._database.write(
                record_failure, key, outcome, reason[:1000], self._clock.now()
            )


def _judge(error: Exception) -> tuple[str, bool]:
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

"""Broken variants of a channel, with the rules that each one breaks."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from aiohttp import web
from pydantic import ConfigDict, Field, SecretStr

from tocsin import (
    Channel,
    CredentialsRefused,
    Delivery,
    EventType,
    Health,
    HttpResponse,
    PluginFailure,
    Receipt,
    Refused,
    TryLater,
    retry_after,
)
from tocsin.testing.conformance import ChannelConformance


class Pager(Channel):
    """Posts each event, with a token."""

    class Settings(Channel.Settings):
        url: str = Field(description="URL of the receiver.")
        token: SecretStr = Field(description="Token of the receiver.")

    async def check(self) -> Health:
        await self.tools.http.vet_url(self.settings.url)
        return Health(detail="it may be requested")

    async def deliver(self, delivery: Delivery) -> Receipt:
        response = await self.tools.http.request(
            "POST",
            self.url(delivery),
            headers={
                "Authorization": self.settings.token.get_secret_value(),
                "Idempotency-Key": self.key(delivery),
            },
            content=delivery.render("body"),
            timeout=self.settings.timeout,
        )
        if failure := self.failure(response):
            raise failure
        return Receipt(status=response.status, response=response.body)

    def url(self, delivery: Delivery) -> str:
        return self.settings.url

    def key(self, delivery: Delivery) -> str:
        return delivery.event.id

    def failure(self, response: HttpResponse) -> PluginFailure | None:
        status = response.status
        if status in (401, 403):
            return CredentialsRefused(str(status))
        if status == 429 or status >= 500 or response.body.startswith(b"<"):
            after = retry_after(response.headers, self.tools.clock.now())
            return TryLater(str(status), after=after, throttled=status == 429)
        return Refused(str(status)) if status >= 400 else None


class PagerConformance(ChannelConformance):
    channel = Pager

    def settings(self, url):
        return {"url": f"{url}/events", "token": "a secret"}


TABLE: list[tuple[frozenset[str], type[Channel]]] = []


def breaks(*rules: str) -> Callable[[type[Channel]], type[Channel]]:
    """Enter a channel: it breaks these rules and keeps all others."""

    def enter(kind: type[Channel]) -> type[Channel]:
        TABLE.append((frozenset(rules), kind))
        return kind

    return enter


def params() -> list[Any]:
    return [pytest.param(rules, kind, id=kind.__name__) for rules, kind in TABLE]


@breaks("test_an_unknown_setting_is_refused")
class Tolerant(Pager):
    class Settings(Pager.Settings):
        model_config = ConfigDict(extra="ignore")


@breaks("test_every_setting_has_a_description")
class Undescribed(Pager):
    class Settings(Pager.Settings):
        depth: int = 1


@breaks("test_secrets_are_secret")
class Open(Pager):
    class Settings(Pager.Settings):
        password: str | None = Field(default=None, description="A password.")


@breaks("test_the_constructor_does_no_io")
class Reads(Pager):
    def __init__(self, settings, tools):
        super().__init__(settings, tools)
        Path(__file__).read_bytes()


@breaks("test_every_event_is_sent")
class Drops(Pager):
    async def deliver(self, delivery):
        if delivery.event.event_type is EventType.SCHEDULE_DISABLED:
            return Receipt()
        return await super().deliver(delivery)


@breaks("test_every_event_is_sent")
class ReturnsText(Pager):
    async def deliver(self, delivery):
        return Receipt(status=str((await super().deliver(delivery)).status))


@breaks("test_the_event_is_named")
class Anonymous(Pager):
    def key(self, delivery):
        return f"{delivery.event.id[:5]}-{delivery.attempt}"


@breaks("test_hostile_texts_are_data")
class NamesThePathByTitle(Pager):
    def url(self, delivery):
        title = delivery.event.data.get("title", "")
        return super().url(delivery) + quote(title[:10] if "\x00" in title else "")


class Judges(Pager):
    """Takes some statuses for another failure."""

    statuses = (422,)
    kind: type[PluginFailure] = TryLater

    def failure(self, response):
        found = super().failure(response)
        return found and self.kind("no") if response.status in self.statuses else found


@breaks("test_a_busy_receiver_is_retried_after_its_delay")
class RetriesAtOnce(Judges):
    statuses = (429,)


@breaks("test_a_failing_receiver_is_retried")
class GivesUp(Judges):
    statuses = (500,)
    kind = Refused


@breaks("test_refused_credentials_raise")
class LosesWithoutPermission(Judges):
    statuses = (403,)
    kind = Refused


@breaks("test_a_refused_event_is_not_retried")
class RetriesForThreeDays(Judges):
    pass


@breaks("test_a_login_page_is_no_receipt")
class BelievesAnything(Pager):
    def failure(self, response):
        return None if response.status == 200 else super().failure(response)


class Swallows(Pager):
    """Takes a failure to reach the receiver for success."""

    words = "cannot connect"

    async def deliver(self, delivery):
        try:
            return await super().deliver(delivery)
        except TryLater as error:
            if self.words not in str(error):
                raise
            return Receipt()


@breaks("test_an_unreachable_receiver_is_temporary")
class SwallowsAbsence(Swallows):
    pass


@breaks("test_a_silent_receiver_is_given_up")
class SwallowsSilence(Swallows):
    words = "timeout"


@breaks("test_no_secret_is_in_a_url")
class ShowsItsToken(Pager):
    def url(self, delivery):
        return f"{super().url(delivery)}?key={quote(self.settings.token.get_secret_value())}"


@breaks("test_a_check_delivers_nothing")
class PostsToCheck(Pager):
    async def check(self):
        await self.tools.http.request("POST", self.settings.url)
        return await super().check()


@breaks("test_the_event_loop_is_not_blocked", "test_no_secret_is_in_a_url")
class BlocksAfterItHasSent(Pager):
    _has_sent = False

    async def deliver(self, delivery):
        self._has_sent = True
        return await super().deliver(delivery)

    async def check(self):
        time.sleep(0.3 if self._has_sent else 0)  # noqa: ASYNC251
        return await super().check()


class ChatConformance(PagerConformance):
    """A receiver that reports errors with status 200."""

    def refuse(self, refusal):
        return web.json_response({"ok": False, "error": refusal.status})


class Chat(Pager):
    """Sees the status of an error in the body."""

    def failure(self, response):
        prefix = b'{"ok": false, "error": '
        if response.body.startswith(prefix):
            status = int(response.body.removeprefix(prefix)[:3])
            response = replace(response, status=status)
        return super().failure(response)

"""Delivery through a Slack incoming webhook.

https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from urllib.parse import urlsplit

import orjson

from tocsin import (
    Delivery,
    Health,
    HttpResponse,
    Misconfigured,
    Receipt,
    Tools,
    retry_after,
)
from tocsin_plugins.slack.failures import build_failure
from tocsin_plugins.slack.messages import PLAIN_TEXT_OPTIONS, render_content
from tocsin_plugins.slack.settings import Settings

_ERRORS: Mapping[int, str] = {
    HTTPStatus.TOO_MANY_REQUESTS: "rate_limited",
    HTTPStatus.GONE: "channel_is_archived",
}
"""Errors that a status stands for, whatever the body contains."""


class IncomingWebhook:
    """Posts to the webhook's channel; the URL is the credential."""

    def __init__(self, settings: Settings, tools: Tools) -> None:
        assert settings.webhook_url is not None  # noqa: S101 - the settings require one of both
        self._settings = settings
        self._tools = tools
        self._url = settings.webhook_url

    def start(self) -> None:
        """Raise `Misconfigured` if Tocsin can never send requests to the URL."""
        self._tools.http.check_url(self._url.get_secret_value())

    async def check(self) -> Health:
        """Check only the URL, because a webhook accepts only messages."""
        problems: tuple[str, ...] = ()
        try:
            await self._tools.http.vet_url(self._url.get_secret_value())
        except Misconfigured as error:
            problems = (f"webhook_url: {error}",)
        host = urlsplit(self._url.get_secret_value()).hostname
        return Health(
            detail=f"incoming webhook at {host}; no request was sent, because every "
            "request posts a message. Webhooks do not support threads, and if the response is "
            "lost, Tocsin posts the event twice",
            problems=problems,
        )

    async def deliver(self, delivery: Delivery) -> Receipt:
        """Post the event; the receipt has no ID, because webhooks do not return IDs."""
        body = render_content(delivery, self._settings, self._tools.public_url)
        response = await self._tools.http.request(
            "POST",
            self._url.get_secret_value(),
            headers={"Content-Type": "application/json; charset=utf-8"},
            content=orjson.dumps(body | PLAIN_TEXT_OPTIONS),
            timeout=self._settings.timeout,
        )
        return self._judge(response)

    def _judge(self, response: HttpResponse) -> Receipt:
        answer = response.body.decode("utf-8", "replace").strip()
        if response.status == HTTPStatus.OK and answer == "ok":
            return Receipt(status=response.status, response=response.body)
        error = answer if answer.isidentifier() and answer != "ok" else str(response.status)
        raise build_failure(
            _ERRORS.get(response.status, error),
            {},
            status=response.status,
            response=response.body,
            after=retry_after(response.headers, self._tools.clock.now()),
        )

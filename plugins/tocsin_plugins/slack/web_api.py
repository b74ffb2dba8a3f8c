"""Client of Slack's Web API: https://docs.slack.dev/apis/web-api."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from tocsin import Api, ApiResponse, ApiSettings, Broken, Tools, retry_after
from tocsin_plugins.slack.failures import build_failure
from tocsin_plugins.slack.settings import Settings

# Slack warns without the character set
_JSON = {"Content-Type": "application/json; charset=utf-8"}


@dataclass(frozen=True, slots=True)
class SlackReply:
    """A method's response: a success, or an error that the caller handles."""

    document: Mapping[str, Any]
    status: int
    scopes: frozenset[str] | None
    """The token's scopes; None if Slack does not return them."""

    @property
    def error(self) -> str | None:
        """The error's name; None for a success."""
        return None if self.document.get("ok") is True else str(self.document.get("error"))

    def part(self, name: str) -> Mapping[str, Any]:
        """Return a member that is an object; empty if the member is missing."""
        found = self.document.get(name)
        return found if isinstance(found, Mapping) else {}

    @property
    def raw(self) -> bytes:
        """The full response as JSON."""
        return orjson.dumps(self.document)


class WebApi:
    """Client that calls the methods of one workspace with a bot token."""

    def __init__(self, settings: Settings, tools: Tools) -> None:
        assert settings.bot_token is not None  # noqa: S101 - the settings give one way or the other
        self._clock = tools.clock
        self._api = Api(tools, ApiSettings(url=settings.api_url, timeout=settings.timeout))
        self._headers = {"Authorization": f"Bearer {settings.bot_token.get_secret_value()}"}

    async def read(
        self, method: str, query: Mapping[str, Any], *, unless: Container[str] = ()
    ) -> SlackReply:
        """Call a method that does not change anything; raises the same errors as `write`."""
        answer = await self._api.request("GET", f"/{method}", query=query, headers=self._headers)
        return self._judge(method, answer, unless)

    async def write(
        self, method: str, arguments: Mapping[str, Any], *, unless: Container[str] = ()
    ) -> SlackReply:
        """Call a method, and return a success or one of the errors in `unless`.

        Raises `TryLater` for transient failures, `CredentialsRefused` and `Misconfigured` for
        failures that an operator must fix, `Refused` for permanent failures, and `Broken` for an
        unexpected response.
        """
        headers = self._headers | _JSON
        path, sent = f"/{method}", dict(arguments)
        answer = await self._api.request("POST", path, json=sent, headers=headers)
        return self._judge(method, answer, unless)

    def _judge(self, method: str, answer: ApiResponse, unless: Container[str]) -> SlackReply:
        document = answer.json
        if not isinstance(document, Mapping) or not isinstance(document.get("ok"), bool):
            raise Broken(f"{method} returned an unexpected response")
        reply = SlackReply(document, answer.status, _scopes(answer.headers))
        if reply.error is None or reply.error in unless:
            return reply
        after = retry_after(answer.headers, self._clock.now())
        raise build_failure(
            reply.error, document, status=reply.status, response=reply.raw, after=after
        )


def _scopes(headers: Mapping[str, str]) -> frozenset[str] | None:
    """Return the scopes that a response's headers list."""
    named = headers.get("X-OAuth-Scopes")
    return (
        None
        if named is None
        else frozenset(part.strip() for part in named.split(",") if part.strip())
    )

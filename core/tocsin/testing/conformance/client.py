"""HTTP client that records what a provider requests."""

from __future__ import annotations

from typing import Any

from tocsin.hookspecs import HttpResponse
from tocsin.testing.conformance.rules import RuleViolation
from tocsin.testing.tools import loopback_client

MOST_REQUESTS = 2_000
"""The number of requests within one rule that counts as a request storm."""


class RecordingClient:
    """The guarded client, with its requests counted."""

    def __init__(self) -> None:
        self._client = loopback_client()
        self.statuses: list[int] = []
        self.count = 0

    def check_url(self, url: str) -> None:
        """Return if the client may request `url`."""
        self._client.check_url(url)

    async def vet_url(self, url: str) -> None:
        """Return if the client may request `url` now."""
        await self._client.vet_url(url)

    async def request(self, method: str, url: str, **options: Any) -> HttpResponse:
        """Return the response."""
        self.count += 1
        if self.count > MOST_REQUESTS:
            raise RuleViolation(f"more than {MOST_REQUESTS:,} requests")
        response = await self._client.request(method, url, **options)
        self.statuses.append(response.status)
        return response

    async def close(self) -> None:
        """Close every connection."""
        await self._client.close()

"""Sender of incidents that repeats what was not accepted."""

from __future__ import annotations

import asyncio
from itertools import count

import aiohttp

from end_to_end.service import Service

TOKEN = "a-token-of-the-scripts"
_PLUGINS = """
enabled = ["push", "webhook"]
[providers.scripts]
plugin = "push"
format = "incident"
token = { file = "token" }
"""


class Sender:
    """Pushes one case after the other; repeats each until it is accepted, as senders do."""

    def __init__(self, service: Service, destination: str) -> None:
        """Configure a service that takes the pushes and tells the destination."""
        (service.folder / "token").write_text(TOKEN)
        (service.folder / "plugins.toml").write_text(_PLUGINS + destination)
        self._url = f"{service.url}/api/push/scripts"
        self.accepted = 0
        self.repeated = 0

    async def run(self) -> None:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        timeout = aiohttp.ClientTimeout(10)
        async with aiohttp.ClientSession(headers=headers, timeout=timeout) as session:
            for number in count():
                case = {"external_id": f"case-{number}", "title": "Odd sign-in", "severity": "High"}
                while not await self._push(session, case):
                    self.repeated += 1
                    await asyncio.sleep(0.1)
                self.accepted += 1
                await asyncio.sleep(0.01)

    async def _push(self, session: aiohttp.ClientSession, case: dict[str, str]) -> bool:
        try:
            async with session.post(self._url, json=case) as response:
                assert response.status in (200, 503), await response.text()
                return response.status == 200
        except (aiohttp.ClientError, TimeoutError):
            return False

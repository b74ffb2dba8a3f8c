"""A service whose intake are NATS servers, senders that push all the time, and what came of it."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections import Counter
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import asyncpg
from sqlalchemy import URL

from end_to_end.service import Service
from nats_servers import NatsServer, install_plugin

TOKEN = "a-token-of-our-scripts"
SENDERS = 4
_PLUGINS = """
enabled = ["nats", "push", "webhook"]
[intake]
plugin = "nats"
servers = {servers}
allow_plain = true
max_mib = 50
[providers.our-scripts]
plugin = "push"
format = "incident"
token = {{ env = "PUSH_TOKEN" }}
"""


class IntakeService(Service):
    """A service whose intake are the servers of a cluster."""

    def __init__(
        self, folder: Path, database: URL, servers: list[NatsServer], *destinations: str
    ) -> None:
        super().__init__(folder, database)
        self.environment |= {"PYTHONPATH": install_plugin(folder), "PUSH_TOKEN": TOKEN}
        addresses = [server.url for server in servers]
        (folder / "plugins.toml").write_text(
            _PLUGINS.format(servers=json.dumps(addresses)) + "".join(destinations)
        )

    async def read_ready(self) -> dict:
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"{self.url}/readyz") as response,
        ):
            return await response.json() | {"code": response.status}

    async def wait_for_intake(self) -> None:
        async with asyncio.timeout(60):
            while not (await self.read_ready())["intake"]:  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.2)


class Senders:
    """Push all the time, each an incident of its own, and note what is answered."""

    def __init__(self, service: Service, prefix: str = "case") -> None:
        self.service = service
        self.prefix = prefix
        self.answers: Counter[int] = Counter()
        self.refusals: Counter[str] = Counter()
        self.accepted: set[str] = set()
        self.stored_at_once: set[str] = set()
        """Of these, what the intake does not have."""
        self.sent = 0
        self.pause = 0.02
        self.padding = ""
        """The description of each incident."""

    @asynccontextmanager
    async def pushing(self):
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=30)) as session:
            tasks = [asyncio.create_task(self._push(session)) for _ in range(SENDERS)]
            try:
                yield
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    async def _push(self, session: aiohttp.ClientSession) -> None:
        while True:
            self.sent += 1
            name = f"{self.prefix}-{self.sent}"
            body = {"external_id": name, "title": "Odd sign-in", "severity": "High"}
            body["description"] = self.padding
            headers = {"Authorization": f"Bearer {TOKEN}"}
            url = f"{self.service.url}/api/push/our-scripts"
            try:
                async with session.post(url, json=body, headers=headers) as response:
                    text = await response.text()
                    if response.status == 503:
                        self.refusals[text] += 1
                        assert int(response.headers["Retry-After"]) > 0
                    self.answers[response.status] += 1
                    if response.status in {200, 202}:
                        self.accepted.add(name)
                    if response.status == 200:
                        self.stored_at_once.add(name)
            except (aiohttp.ClientError, TimeoutError):
                self.answers[0] += 1
            await asyncio.sleep(self.pause)

    async def accept(self, more: int, status: int = 202) -> None:
        """Wait for so many more answers with this status."""
        enough = self.answers[status] + more
        async with asyncio.timeout(60):
            while self.answers[status] < enough:  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.05)


QUERIES = (
    "SELECT external_id FROM incidents",
    "SELECT coalesce(sum(records), 0) FROM coverage WHERE stream = 'push'",
    "SELECT count(*) FROM intake_positions WHERE accepted > stored",
)


async def read(service: Service) -> tuple[set[str], int, int]:
    """Return the stored incidents, the records that were stored, and whether pushes wait."""
    if service.is_alone:
        with sqlite3.connect(f"file:{service.database.database}?mode=ro", uri=True) as connection:
            rows = [connection.execute(query).fetchall() for query in QUERIES]
    else:
        url = service.database.set(drivername="postgresql")
        connection = await asyncpg.connect(url.render_as_string(hide_password=False))
        rows = [await connection.fetch(query) for query in QUERIES]
        await connection.close()
    return {name for (name,) in map(tuple, rows[0])}, int(rows[1][0][0]), int(rows[2][0][0])


async def settle(service: Service, senders: Senders) -> tuple[set[str], int]:
    """Wait until all that was accepted is stored; return what is missing, and the repeats."""
    missing, records, waiting = senders.accepted, 0, 1
    try:
        async with asyncio.timeout(60):
            while missing or waiting:
                await asyncio.sleep(0.5)
                stored, records, waiting = await read(service)
                missing = senders.accepted - stored
    except TimeoutError:
        return missing, 0
    return missing, records - len(stored)


async def prove(service: Service) -> list[str]:
    """Return the kinds of what is not accounted for, once no node counts as stuck any more."""
    async with asyncio.timeout(60):
        while True:
            _, out, errors = await service.command("prove", "--since", "1h", "--json")
            assert out, errors
            kinds = [one["kind"] for one in json.loads(out)["unaccounted"]]
            if "node" not in kinds:
                return kinds
            await asyncio.sleep(1)


async def expect_all_stored(service: Service, senders: Senders, *, repeats: int) -> None:
    """Expect what was accepted to be stored, with at most so many repeats, and accounted for."""
    missing, repeated = await settle(service, senders)
    assert not missing
    assert 0 <= repeated <= repeats
    assert await prove(service) == []

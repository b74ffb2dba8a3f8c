"""A Tocsin of its own process, a sensor that writes its feed, and a receiver that verifies."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

import aiohttp
from aiohttp import web
from sqlalchemy import URL
from standardwebhooks import Webhook

import commands
from ports import free_port

SECRET = "whsec_" + "QUJDREVG" * 5
_READY_SECONDS = 90
"""A start takes two seconds; on a machine with much else to do, it took more than 30."""


async def until(condition: Callable[[], bool], seconds: float = 30) -> None:
    """Return as soon as the condition holds; fail when it does not in time."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - another process is what is waited for
            await asyncio.sleep(0.02)


def destination(name: str, url: str, **settings: object) -> str:
    """Return the block of a webhook in `plugins.toml`."""
    lines = (f"{key} = {json.dumps(value)}\n" for key, value in settings.items())
    return f"""
    [destinations.{name}]
    plugin = "webhook"
    url = "{url}"
    secret = {{ file = "secret" }}
    allow_networks = ["127.0.0.0/8"]
    {"".join(lines)}
    """


class Receiver:
    """Keeps every delivery whose signature an independent library has verified."""

    def __init__(self) -> None:
        self.port = free_port()
        self.received: list[tuple[str, dict]] = []
        self.statuses: list[int] = []
        self._verify = Webhook(SECRET).verify

    @property
    def destination(self) -> str:
        """The block of the destination `soc`, which leads here."""
        url = f"http://127.0.0.1:{self.port}/hook"
        return destination("soc", url, retry_schedule=["100ms"] * 3)

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_post("/hook", self._receive)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port).start()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self._runner.cleanup()

    async def _receive(self, request: web.Request) -> web.Response:
        headers = {name.lower(): value for name, value in request.headers.items()}
        event = self._verify(await request.read(), headers)
        status = self.statuses.pop(0) if self.statuses else 204
        if status < 300:
            self.received.append((headers["webhook-id"], event))
        return web.Response(status=status)

    async def wait_for(self, more: int, of: Sensor) -> None:
        """Return when `more` have arrived, or all of the sensor's have."""
        enough = len(self.received) + more
        await until(lambda: len(self.received) >= enough or len(self.numbers) == of.written)

    @property
    def numbers(self) -> set[int]:
        return {event["data"]["incident_number"] for _, event in self.received}

    @property
    def ids(self) -> set[str]:
        return {webhook_id for webhook_id, _ in self.received}


class Sensor:
    """Writes EVE records as Suricata does."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.written = 0
        self._start = datetime.now(UTC).replace(microsecond=0) - timedelta(days=30)

    def record(self) -> bytes:
        """Return the next alert; each makes an incident of its own."""
        self.written += 1
        moment = self._start + timedelta(seconds=self.written)
        alert = {
            "timestamp": moment.strftime("%Y-%m-%dT%H:%M:%S.000001+0000"),
            "flow_id": self.written,
            "event_type": "alert",
            "src_ip": "198.51.100.7",
            "src_port": 40000,
            "dest_ip": "192.0.2.10",
            "dest_port": 80,
            "proto": "TCP",
            "alert": {
                "action": "allowed",
                "gid": 1,
                "signature_id": 9_000_000 + self.written,
                "rev": 1,
                "signature": f"EXAMPLE Exploit attempt {self.written}",
                "category": "Attempted Administrator Privilege Gain",
                "severity": 1,
            },
        }
        return json.dumps(alert).encode() + b"\n"

    def write(self, count: int) -> None:
        with self.path.open("ab") as file:
            file.write(b"".join(self.record() for _ in range(count)))

    def write_half(self) -> Callable[[], None]:
        """Write the first half of a record, and return what writes the rest."""
        record = self.record()
        half = len(record) // 2
        with self.path.open("ab") as file:
            file.write(record[:half])

        def finish() -> None:
            with self.path.open("ab") as file:
                file.write(record[half:])

        return finish

    def rotate(self) -> None:
        self.path.rename(self.path.with_suffix(f".json.{self.written}"))


class Service:
    """`tocsin serve` in a process of its own, with the means to stop it in every way."""

    def __init__(self, folder: Path, database: URL, *destinations: str) -> None:
        self.folder = folder
        self.database = database
        self._process: asyncio.subprocess.Process | commands.ForkedCommand | None = None
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = folder / "serve.log"
        self.prefix: tuple[str, ...] = ()
        """The command that runs `tocsin`, where that is not this process."""
        self.is_alone = database.get_backend_name() == "sqlite"
        self.environment = {
            **os.environ,
            "TOCSIN_DATA_DIR": str(folder / "data"),
            "TOCSIN_DATABASE_URL": database.render_as_string(hide_password=False),
            "TOCSIN_PLUGINS_FILE": str(folder / "plugins.toml"),
            "TOCSIN_PORT": str(self.port),
            "TOCSIN_ENCRYPTION_KEY": "A" * 43 + "=",
        }
        (folder / "secret").write_text(SECRET)
        (folder / "plugins.toml").write_text(
            f"""
            enabled = ["suricata", "webhook"]
            [providers.edge]
            plugin = "suricata"
            path = "{folder}/eve.json"
            poll_interval = "50ms"
            """
            + "".join(destinations)
        )

    async def start(self, *, is_applied: bool = False, waits: bool = True) -> None:
        """Start it, and return when it is ready; `is_applied` tells that the file was before.

        Without `waits`, return at once.
        """
        if not self.is_alone and not is_applied:
            status, _, errors = await self.command("apply")
            assert status == 0, errors
        self._process = await self._run_serve()
        async with asyncio.timeout(_READY_SECONDS), aiohttp.ClientSession() as session:
            while waits and not await self.is_ready(session):
                assert self._process.returncode is None, self.log.read_text()
                await asyncio.sleep(0.02)

    async def _run_serve(self) -> asyncio.subprocess.Process | commands.ForkedCommand:
        with self.log.open("ab") as log:
            command = (*self.prefix, sys.executable, "-m", "tocsin", "serve")
            return await asyncio.create_subprocess_exec(*command, env=self.environment, stderr=log)

    async def is_ready(self, session: aiohttp.ClientSession) -> bool:
        """Return what the service says of itself."""
        try:
            async with session.get(f"{self.url}/readyz") as response:
                return response.status == 200
        except aiohttp.ClientConnectionError:
            return False

    @property
    def pid(self) -> int:
        """The id of its process."""
        assert self._process is not None
        return self._process.pid

    async def wait(self) -> int:
        """Return the status with which it ends by itself."""
        assert self._process is not None
        return await self._process.wait()

    async def kill(self) -> None:
        await self._end(signal.SIGKILL)

    async def stop(self) -> int:
        return await self._end(signal.SIGTERM)

    async def _end(self, how: signal.Signals) -> int:
        """Send the signal to what runs, and return its status; 0 where nothing ever ran."""
        if self._process is None:
            return 0
        if self._process.returncode is None:
            self._process.send_signal(how)
        return await self._process.wait()

    async def command(self, *arguments: str) -> tuple[int, str, str]:
        """Return status, output and errors of a `tocsin` command."""
        process = await asyncio.create_subprocess_exec(
            *(*self.prefix, sys.executable, "-m", "tocsin", *arguments),
            env=self.environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await process.communicate()
        return process.returncode or 0, out.decode(), err.decode()

    async def make_key(self, *scopes: str) -> str:
        _, token, _ = await self.command("admin", "token")
        headers = {"Authorization": f"Bearer {token.strip()}"}
        body = {"name": "test", "scopes": scopes or ["incidents:read"]}
        async with (
            aiohttp.ClientSession(headers=headers) as session,
            session.post(f"{self.url}/api/admin/api-keys", json=body) as response,
        ):
            assert response.status == 201, await response.text()
            return (await response.json())["api_key"]

    async def get(self, path: str, key: str) -> dict:
        async with (
            aiohttp.ClientSession(headers={"X-API-Key": key}) as session,
            session.get(self.url + path) as response,
        ):
            assert response.status == 200, await response.text()
            return await response.json()


class ForkedService(Service):
    """A service whose processes begin as copies of one that has imported Tocsin.

    Imports take longer than what most of the tests look at.
    """

    async def _run_serve(self) -> commands.ForkedCommand:
        return await asyncio.to_thread(
            commands.ForkedCommand,
            ["serve"],
            self.folder,
            self.environment,
            output=Path(os.devnull),
            errors=self.log,
        )

    async def command(self, *arguments: str) -> tuple[int, str, str]:
        """Return status, output and errors of a `tocsin` command."""
        return await asyncio.to_thread(commands.run, arguments, self.folder, self.environment)

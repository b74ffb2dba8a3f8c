"""Real CrowdSec from its Debian package, without installation."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self

import aiohttp
import pytest

from ports import free_port

PACKAGE = Path(
    os.environ.get("TOCSIN_CROWDSEC", Path(__file__).parents[1] / ".components" / "crowdsec")
)
"""Where the package is unpacked; `.ci/components` does that."""

WHY_NOT = (
    None
    if (PACKAGE / "usr/bin/crowdsec").is_file()
    else f"no CrowdSec is unpacked in {PACKAGE}; run .ci/components, or set TOCSIN_CROWDSEC"
)
"""Why there is no real CrowdSec to test with, None where there is one."""

MACHINE, PASSWORD = "tocsin", "correct horse battery staple"
_HUB = PACKAGE / "usr/share/crowdsec/hub"
_ITEMS = (
    "parsers/s00-raw/crowdsecurity/syslog-logs.yaml",
    "parsers/s01-parse/crowdsecurity/sshd-logs.yaml",
    "parsers/s02-enrich/crowdsecurity/dateparse-enrich.yaml",
    "scenarios/crowdsecurity/ssh-bf.yaml",
)


def sshd_log(address: str, users: Iterable[str], at: datetime | None = None) -> str:
    """Return what sshd logs when someone guesses the passwords of these users."""
    begin = at or datetime.now(UTC) - timedelta(minutes=1)
    return "".join(
        f"{begin + timedelta(seconds=number):%b %e %H:%M:%S} bastion sshd[{4000 + number}]: "
        f"Failed password for invalid user {user} from {address} port {50000 + number} ssh2\n"
        for number, user in enumerate(users)
    )


def detection(number: int = 1, **changes: Any) -> dict[str, Any]:
    """Return an alert as a sensor sends it."""
    now = datetime.now(UTC)
    return {
        "capacity": 5,
        "events": [],
        "events_count": 6,
        "leakspeed": "10s",
        "message": f"detection {number}",
        "scenario": f"test/detection-{number}",
        "scenario_hash": "",
        "scenario_version": "",
        "simulated": False,
        "source": {"scope": "Ip", "value": "203.0.113.7", "ip": "203.0.113.7"},
        "start_at": (now - timedelta(minutes=1)).isoformat(),
        "stop_at": now.isoformat(),
    } | changes


def decision(duration: str = "4h", **changes: Any) -> dict[str, Any]:
    """Return a decision as it comes with an alert."""
    return {
        "duration": duration,
        "origin": "crowdsec",
        "scenario": "test/detection",
        "scope": "Ip",
        "type": "ban",
        "value": "203.0.113.7",
    } | changes


class LocalApi:
    """A Local API in a process and a folder of its own, with one machine that may sign in."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._configuration = folder / "config.yaml"
        self._process: asyncio.subprocess.Process | None = None
        self._address = f"127.0.0.1:{free_port()}"
        self.url = f"http://{self._address}"
        self.log = folder / "crowdsec.log"

    async def __aenter__(self) -> Self:
        """Begin without alerts; a test that wants a real one is skipped where there is none."""
        if WHY_NOT:
            pytest.skip(WHY_NOT)
        self._install()
        await self.add_machine()
        await self.start()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.kill()

    def _install(self) -> None:
        """Make the folder what CrowdSec expects."""
        for item in _ITEMS:
            kind, *_, name = Path(item).parts
            stage = Path(item).parts[1] if kind == "parsers" else ""
            link = self._folder / kind / stage / name
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(_HUB / item)
        (self._folder / "hub").symlink_to(_HUB)
        for name in ("patterns", "simulation.yaml", "profiles.yaml"):
            (self._folder / name).symlink_to(PACKAGE / "etc/crowdsec" / name)
        for name in ("data", "notifications", "plugins"):
            (self._folder / name).mkdir()
        (self._folder / "acquis.yaml").touch()
        self._configuration.write_text(json.dumps(self._settings()))

    def _settings(self) -> dict[str, Any]:
        """Return the configuration; JSON is YAML."""
        home = str(self._folder)
        return {
            "common": {"daemonize": False, "log_media": "stdout", "log_level": "info"},
            "config_paths": {
                "config_dir": home,
                "data_dir": f"{home}/data",
                "simulation_path": f"{home}/simulation.yaml",
                "hub_dir": f"{home}/hub",
                "index_path": f"{home}/hub/.index.json",
                "notification_dir": f"{home}/notifications",
                "plugin_dir": f"{home}/plugins",
            },
            "crowdsec_service": {"acquisition_path": f"{home}/acquis.yaml", "parser_routines": 1},
            "db_config": {"type": "sqlite", "db_path": f"{home}/data/crowdsec.db"},
            "api": {
                "client": {"credentials_path": f"{home}/credentials.yaml"},
                "server": {
                    "listen_uri": self._address,
                    "profiles_path": f"{home}/profiles.yaml",
                    "console_path": f"{home}/console.yaml",
                },
            },
            "prometheus": {"enabled": False},
        }

    async def add_machine(self) -> None:
        file = str(self._folder / "credentials.yaml")
        await self.cscli("machines", "add", MACHINE, "--password", PASSWORD, "--force", "-f", file)

    async def start(self) -> None:
        """Start it, and return when it answers."""
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self._command("crowdsec", "-no-cs", "-no-capi"), stdout=log, stderr=log
            )
        async with asyncio.timeout(20):
            while not await self._answers():
                assert self._process.returncode is None, self.log.read_text()
                await asyncio.sleep(0.02)

    async def _answers(self) -> bool:
        try:
            _, writer = await asyncio.open_connection(*self._address.split(":"))
        except ConnectionRefusedError:
            return False
        writer.close()
        return True

    async def kill(self) -> None:
        """End it at once, if it runs."""
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(signal.SIGKILL)
            await self._process.wait()

    def pause(self) -> None:
        """Have it take connections and answer nobody."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Have it go on where it was paused."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    async def begin_anew(self) -> None:
        """Make it a new database, whose ids begin at 1 again; it must not run."""
        shutil.rmtree(self._folder / "data")
        (self._folder / "data").mkdir()
        await self.add_machine()

    async def cscli(self, *arguments: str) -> None:
        await self._run(*self._command("cscli", *arguments))

    async def detect(self, log: str) -> None:
        """Have CrowdSec find out what there is in a log of sshd."""
        path = self._folder / "auth.log"
        path.write_text(log)
        source = ("-dsn", f"file://{path}", "-type", "syslog")
        await self._run(*self._command("crowdsec", "-no-api", "-no-capi", *source))

    def _command(self, program: str, *arguments: str) -> tuple[str, ...]:
        return str(PACKAGE / "usr/bin" / program), "-c", str(self._configuration), *arguments

    async def _run(self, *command: str) -> None:
        process = await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        async with asyncio.timeout(60):
            output, _ = await process.communicate()
        assert process.returncode == 0, output.decode()

    async def send(self, *alerts: dict[str, Any]) -> None:
        """Send alerts as a sensor does."""
        await self.request("POST", "/v1/alerts", list(alerts))

    async def register(self, **credentials: str) -> None:
        """Ask for another machine, which nobody validates."""
        async with self._session() as session, session.post("/v1/watchers", json=credentials):
            pass

    async def request(self, method: str, path: str, content: Any = None) -> Any:
        """Return what it answers the machine."""
        credentials = {"machine_id": MACHINE, "password": PASSWORD}
        async with self._session() as session:
            async with session.post("/v1/watchers/login", json=credentials) as answer:
                token = (await answer.json())["token"]
            signed = {"Authorization": f"Bearer {token}"}
            async with session.request(method, path, json=content, headers=signed) as answer:
                return await answer.json()

    def _session(self) -> aiohttp.ClientSession:
        headers = {"User-Agent": "sensor/1"}  # it refuses those of another form
        return aiohttp.ClientSession(self.url, headers=headers, raise_for_status=True)

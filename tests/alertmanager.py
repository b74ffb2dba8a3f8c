"""Real Alertmanager from its Debian package, without installation."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from ports import free_port

PACKAGE = Path(
    os.environ.get(
        "TOCSIN_ALERTMANAGER", Path(__file__).parents[1] / ".components" / "alertmanager"
    )
)
"""Where the package is unpacked; `.ci/components` does that."""
_BINARY = PACKAGE / "usr/bin/prometheus-alertmanager"

WHY_NOT = (
    None
    if _BINARY.is_file()
    else f"no Alertmanager is unpacked in {PACKAGE}; run .ci/components, or set TOCSIN_ALERTMANAGER"
)
"""Why there is no real Alertmanager to test with, None where there is one."""

_AT_ONCE = 200
_SETTINGS = """
route:
  receiver: tocsin
  group_by: [alertname]
  group_wait: 2s
  group_interval: 2s
receivers:
- name: tocsin
  webhook_configs:
  - url: {url}
    http_config:
      authorization:
        credentials: {token}
"""


@dataclass(frozen=True, slots=True)
class Alertmanager:
    """A running Alertmanager."""

    url: str
    session: aiohttp.ClientSession

    async def post(self, alerts: Sequence[dict[str, Any]]) -> None:
        """Raise alerts, as Prometheus does."""
        headers = {"Content-Type": "application/json"}
        for start in range(0, len(alerts), _AT_ONCE):
            body = json.dumps(alerts[start : start + _AT_ONCE])
            url = f"{self.url}/api/v2/alerts"
            async with self.session.post(url, data=body, headers=headers) as response:
                assert response.status == 200, await response.text()

    async def count(self, name: str, **labels: str) -> float:
        """Return the sum of a counter over its series with these labels."""
        async with self.session.get(f"{self.url}/metrics") as response:
            lines = (await response.text()).splitlines()
        wanted = [f'{label}="{value}"' for label, value in labels.items()]
        return sum(
            float(line.rpartition(" ")[2])
            for line in lines
            if line.startswith(f"{name}{{") and all(one in line for one in wanted)
        )


@asynccontextmanager
async def open_alertmanager(folder: Path, url: str, token: str) -> AsyncIterator[Alertmanager]:
    """Run an Alertmanager that sends its groups to a push endpoint."""
    settings, port = folder / "alertmanager.yml", free_port()
    settings.write_text(_SETTINGS.format(url=url, token=token))
    with (folder / "alertmanager.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            _BINARY,
            f"--config.file={settings}",
            f"--storage.path={folder / 'alertmanager'}",
            f"--web.listen-address=127.0.0.1:{port}",
            "--cluster.listen-address=",
            cwd=PACKAGE,  # where its templates are
            stdout=log,
            stderr=log,
        )
    try:
        async with aiohttp.ClientSession() as session, asyncio.timeout(120):
            running = Alertmanager(f"http://127.0.0.1:{port}", session)
            while not await _is_ready(running):
                assert process.returncode is None, (folder / "alertmanager.log").read_text()
                await asyncio.sleep(0.1)
            yield running
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def _is_ready(running: Alertmanager) -> bool:
    try:
        async with running.session.get(f"{running.url}/-/ready") as response:
            return response.status == 200
    except aiohttp.ClientConnectionError:
        return False

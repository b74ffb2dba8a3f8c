"""The pictures of docs/operators/console.md: `PYTHONPATH=tests python -m tests.console_pictures`.

A sensor of the demo, an EDR, a receiver that works and one that does not, seen in Chromium.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from aiohttp import web
from sqlalchemy import make_url
from tests.connectors.crowdstrike.simulator import CID, SETTINGS, FalconSimulator
from tests.end_to_end.service import Receiver, Service, destination
from tests.ports import free_port

from browser import open_browser, open_window, sign_in
from tocsin import Entity, EntityKind, Severity
from tocsin.clock import SystemClock
from tocsin.testing import Case, Siem

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "docs/operators/pictures"
_WIDE, _NARROW = {"width": 1360, "height": 900}, {"width": 400, "height": 860}
_ALERTS = 60
_TITLES = (
    "Credential dumping",
    "Suspicious PowerShell",
    "Ransomware behavior",
    "Lateral movement",
)
_SCHEDULE = """
[schedules.morning-hunt]
query = "hunt for 203.0.113.88 in the last day"
persona = "threat-hunter"
cron = "0 6 * * *"
"""
_SHOTS = (
    ("overview", "/", _WIDE, "light"),
    ("overview-dark", "/", _WIDE, "dark"),
    ("overview-narrow", "/", _NARROW, "light"),
    ("incidents", "/incidents?sort=severity", _WIDE, "light"),
    ("incident", "/incidents/1", _WIDE, "light"),
    ("investigation", "{investigation}", _WIDE, "light"),
    ("graph", "/graph?entity=203.0.113.88", _WIDE, "dark"),
    ("destination", "/destinations/tickets", _WIDE, "light"),
)


async def main() -> None:
    """Draw every picture."""
    PICTURES.mkdir(exist_ok=True)
    with TemporaryDirectory() as folder:
        async with _open_service(Path(folder)) as service, open_browser() as browser:
            _, token, _ = await service.command("admin", "token", "--name", "ana")
            investigation = await _investigate(browser, service.url, token.strip())
            for name, path, viewport, scheme in _SHOTS:
                target = PICTURES / f"console-{name}.png"
                options = {"viewport": viewport, "color_scheme": scheme, "timezone_id": "UTC"}
                async with open_window(browser, service.url, **options) as page:
                    await sign_in(page, token.strip())
                    await page.goto(path.format(investigation=investigation))
                    await page.wait_for_timeout(500)  # until what a script adds is there
                    await page.screenshot(path=target)
                print(f"{target}: {target.stat().st_size:,} bytes")  # noqa: T201 - its output


async def _investigate(browser: Any, url: str, token: str) -> str:
    """Have an incident investigated, and return where the report is."""
    async with open_window(browser, url) as page:
        await sign_in(page, token)
        await page.goto("/incidents/1")
        await page.get_by_role("main").get_by_text("Investigate", exact=True).first.click()
        await page.get_by_role("button", name="Investigate").click()
        await page.wait_for_url("**/investigations/ses_*")
        await page.get_by_role("heading", name="Findings").wait_for(timeout=60_000)
        return page.url.removeprefix(url).partition("?")[0]


@asynccontextmanager
async def _open_service(folder: Path) -> AsyncIterator[Service]:
    """Return a service that has read both sources, and told both receivers."""
    write_feed(folder / "eve.json")
    siem = Siem(SystemClock())
    for case in cases():
        siem.put(case)
    async with FalconSimulator(siem) as falcon, Receiver() as receiver, broken_receiver() as broken:
        settings = {"url": falcon.url, **SETTINGS}
        (folder / "falcon").write_text(settings.pop("client_secret"))
        lines = "\n".join(f'{name} = "{value}"' for name, value in settings.items())
        lines += '\nclient_secret = { file = "falcon" }'
        tickets = destination("tickets", broken, retry_schedule=["1s"] * 2)
        provider = f'[providers.falcon]\nplugin = "crowdstrike"\n{lines}\n'
        database = make_url(f"sqlite:///{folder / 'tocsin.db'}")
        service = Service(folder, database, receiver.destination, tickets, provider, _SCHEDULE)
        file = folder / "plugins.toml"
        enabled = '["suricata", "crowdstrike", "webhook"]'
        file.write_text(file.read_text().replace('["suricata", "webhook"]', enabled))
        await service.start()
        try:
            await asyncio.sleep(25)  # until what cannot be delivered is dead
            yield service
        finally:
            await service.stop()


def write_feed(path: Path) -> None:
    """Write what the demo's sensor has seen in the last hours."""
    from tocsin.cli.demo.week import NOW, week

    begin = datetime.now(UTC) - timedelta(hours=6)
    lines = [
        line.replace(NOW, f"{begin + timedelta(minutes=number):%Y-%m-%dT%H:%M:%S.%f+0000}")
        for number, line in enumerate(week(1)[: _ALERTS * 4])
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def cases() -> list[Case]:
    """Return what the EDR has seen."""
    now = datetime.now(UTC)
    return [
        Case(
            id=f"{CID}:ind:d:{number}",
            number=number,
            title=f"{_TITLES[number % len(_TITLES)]} on ws-{number}",
            severity=list(Severity)[number % len(Severity)],
            created_at=now - timedelta(hours=2 * number + 1),
            changed_at=now - timedelta(hours=2 * number + 1),
            entities=(
                Entity(EntityKind.HOST, f"ws-{number}"),
                Entity(EntityKind.IP, "203.0.113.88"),
            ),
        )
        for number in range(1, 9)
    ]


@asynccontextmanager
async def broken_receiver() -> AsyncIterator[str]:
    """Return the address of a receiver whose queue was closed."""

    async def refuse(_request: web.Request) -> web.Response:
        return web.json_response({"error": "queue SEC is closed for maintenance"}, status=503)

    app = web.Application()
    app.router.add_post("/hook", refuse)
    runner = web.AppRunner(app)
    await runner.setup()
    port = free_port()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    yield f"http://127.0.0.1:{port}/hook"
    await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(main())

"""Incidents synced a second from an EVE file, and the memory that a large one takes."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import orjson
import structlog
from sqlalchemy import URL, Connection, func, select

from bench.children import child
from bench.databases import KINDS, NewUrl, new_urls, open_new
from bench.rounds import OURS, interleave, report_rates
from bench.samples import PUBLIC_URL
from tocsin import Tools
from tocsin.clock import SystemClock
from tocsin.events import Bell
from tocsin.incidents import ProviderSync
from tocsin.store.tables import incidents
from tocsin_connectors.siem.suricata import Suricata

MIXES = ((20_000, 0), (5_000, 9))
"""How many alerts, and how many other lines to each."""
_BEGIN = datetime(2026, 11, 21, tzinfo=UTC)
_LARGE = 1024**3


def run(rounds: int) -> None:
    """Measure on every kind of database, with alerts alone and among nine times as much else."""
    with TemporaryDirectory() as folder:
        for alerts, others in MIXES:
            path = Path(folder) / f"eve-{others}.json"
            path.write_bytes(b"".join(_lines(alerts, others)))
            for kind in KINDS:
                with new_urls(kind) as new_url:
                    asyncio.run(_measure(kind, new_url, path, rounds))


def run_large() -> None:
    """Say how much memory a file of 1 GiB takes on SQLite."""
    with TemporaryDirectory() as folder, new_urls("SQLite") as new_url:
        path = Path(folder) / "eve.json"
        with path.open("wb") as file:
            seed = 0
            while file.tell() < _LARGE:
                file.writelines(_lines(1000, 39, seed := seed + 1))
        with child(_sync_large, str(new_url().database), path) as (grown, seconds):
            size = path.stat().st_size / 1e6
            print(
                f"\n{size:,.0f} MB in {seconds:.0f} s: peak memory grew by {grown / 1024:.0f} MiB"
            )


def _sync_large(send: Callable[[Any], None], folder: str, path: Path) -> None:
    async def measure() -> None:
        url = URL.create("sqlite", database=folder)
        before = _peak_memory()
        seconds, _ = await _sync(lambda: url, path)
        send((_peak_memory() - before, seconds))

    asyncio.run(measure())


def _peak_memory() -> int:
    """Return KiB, as Linux tells it; `getrusage` would count the parent's as well."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])


async def _measure(kind: str, new_url: NewUrl, path: Path, rounds: int) -> None:
    found = 0
    size, lines = await asyncio.to_thread(_extent, path)

    async def ours() -> float:
        nonlocal found
        seconds, found = await _sync(new_url, path)
        return lines / seconds

    async def bare() -> float:
        begin = time.perf_counter()
        with path.open("rb") as file:
            assert sum(1 for line in file if orjson.loads(line)) == lines
        return lines / (time.perf_counter() - begin)

    rates = await interleave({OURS: ours, "reading and parsing alone": bare}, rounds)
    report_rates(f"{lines:,} lines, {size:.1f} MB, {found:,} incidents; {kind}", "lines", rates)
    typical = median(rates[OURS]) / lines
    print(f"Tocsin: {typical * size:.1f} MB/s, {typical * found:,.0f} incidents/s", flush=True)


def _extent(path: Path) -> tuple[float, int]:
    """Return a file's size in MB, and how many lines it has."""
    content = path.read_bytes()
    return len(content) / 1e6, content.count(b"\n")


async def _sync(new_url: NewUrl, path: Path) -> tuple[float, int]:
    """Return how long a sync into a new database took, and how many incidents it made."""
    database = await open_new(new_url)
    tools = Tools(name="sensors", http=None, clock=SystemClock(), log=structlog.get_logger())
    provider = Suricata(Suricata.Settings(plugin="suricata", path=str(path)), tools)
    sync = ProviderSync(provider, database, tools.clock, Bell(), PUBLIC_URL)
    begin = time.perf_counter()
    await sync.read_all()
    seconds = time.perf_counter() - begin
    found = await database.read(_count)
    await database.close()
    return seconds, found


def _count(connection: Connection) -> int:
    return int(connection.execute(select(func.count()).select_from(incidents)).scalar_one())


def _lines(alerts: int, others: int, seed: int = 1) -> list[bytes]:
    """Return the lines of an EVE file: two alerts to an incident, `others` flows to an alert."""
    dice = random.Random(seed)
    lines = []
    for number in range(alerts):
        moment = _BEGIN + timedelta(seconds=number)
        lines.append(_alert(dice, number % (alerts // 2), _BEGIN, seed))
        lines += [_flow(dice, moment) for _ in range(others)]
    return [orjson.dumps(line) + b"\n" for line in lines]


def _connection(dice: random.Random, moment: datetime) -> dict[str, Any]:
    return {
        "timestamp": moment.isoformat(),
        "flow_id": dice.getrandbits(50),
        "in_iface": "eth0",
        "src_port": dice.randrange(1024, 65536),
        "dest_ip": f"203.0.113.{dice.randrange(256)}",
        "dest_port": 80,
        "proto": "TCP",
        "app_proto": "http",
    }


def _alert(dice: random.Random, incident: int, moment: datetime, seed: int) -> dict[str, Any]:
    return {
        **_connection(dice, moment),
        "event_type": "alert",
        "src_ip": f"10.{seed % 256}.{incident >> 8 & 255}.{incident & 255}",
        "alert": {
            "action": "allowed",
            "gid": 1,
            "signature_id": 2_000_000 + seed // 256,
            "rev": 3,
            "signature": "ET MALWARE Beacon to a known command server",
            "category": "Malware Command and Control Activity Detected",
            "severity": 1,
            "metadata": {"signature_severity": ["Major"], "mitre_technique_id": ["T1071"]},
        },
        "http": {"hostname": f"c{incident % 700}.bad.example", "url": "/gate.php", "status": 200},
        "flow": {"pkts_toserver": 5, "pkts_toclient": 4, "bytes_toserver": 612},
    }


def _flow(dice: random.Random, moment: datetime) -> dict[str, Any]:
    return {
        **_connection(dice, moment),
        "event_type": "flow",
        "src_ip": f"10.0.{dice.randrange(256)}.{dice.randrange(256)}",
        "flow": {
            "pkts_toserver": dice.randrange(1000),
            "pkts_toclient": dice.randrange(1000),
            "bytes_toserver": dice.getrandbits(20),
            "bytes_toclient": dice.getrandbits(24),
            "start": moment.isoformat(),
            "end": moment.isoformat(),
            "age": 12,
            "state": "closed",
            "reason": "timeout",
            "alerted": False,
        },
    }

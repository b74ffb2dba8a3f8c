"""Incidents synced per second from an EVE file, and memory use for a large file."""

from __future__ import annotations

import asyncio
import random
import shutil
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from itertools import count, takewhile
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import orjson
import structlog
from sqlalchemy import URL, Connection, func, select

from bench.comparison import OURS, interleave, report_rates
from bench.databases import KINDS, NewUrl, new_urls, open_new
from bench.samples import PUBLIC_URL
from bench.subprocesses import child
from tocsin import Page, Provider, Tools
from tocsin.clock import SystemClock
from tocsin.events import Notifiers
from tocsin.incidents import ProviderSync, SyncContext
from tocsin.store import Database
from tocsin.store.tables import incidents
from tocsin_connectors.siem.suricata import Suricata

MIXES = ((20_000, 0), (5_000, 9))
"""Number of alerts, and number of other lines for each."""
MARKS = (1, 5, 10)
"""Positions in GB at which the memory use is reported; the last is the file size."""
_BEGIN = datetime(2026, 11, 21, tzinfo=UTC)
_GB = 10**9
_DATABASE = 2 * _GB  # enough space for the stored data of a large file


def run(rounds: int) -> None:
    """Measure every kind of database, with alerts only, and with nine other lines for each."""
    with TemporaryDirectory() as folder:
        for alerts, others in MIXES:
            path = Path(folder) / f"eve-{others}.json"
            path.write_bytes(b"".join(_lines(alerts, others)))
            for kind in KINDS:
                with new_urls(kind) as new_url:
                    asyncio.run(_measure(kind, new_url, path, rounds))


def run_large(_rounds: int) -> None:
    """Report the memory use for a large file on SQLite, as large as the disk space allows."""
    with TemporaryDirectory() as folder, new_urls("SQLite") as new_url:
        room = shutil.disk_usage(folder).free - _DATABASE
        marks = list(takewhile(lambda mark: mark * _GB <= room, MARKS))
        if not marks:
            print(f"\nNot enough disk space for a file of {MARKS[0]} GB.")
            return
        path = Path(folder) / "eve.json"
        _write_large(path, marks[-1] * _GB)
        with child(_sync_large, str(new_url().database), path, marks) as (peaks, seconds, found):
            _report_large(peaks, seconds, found)
    if marks[-1] < MARKS[-1]:
        print(f"Not enough disk space for a file of {MARKS[-1]} GB.")


def _report_large(peaks: Mapping[int, int], seconds: float, found: int) -> None:
    last = max(peaks)
    print(f"\n| {last} GB, {found:,} incidents, {seconds:,.0f} s; SQLite | peak memory, MiB |")
    print("|---|---:|")
    for mark, peak in peaks.items():
        print(f"| after {mark} GB | {peak / 1024:,.0f} |", flush=True)


def _write_large(path: Path, size: int) -> None:
    """Write at least this many bytes: new alerts, each before the same 39 other records."""
    with path.open("wb") as file:
        blocks = _blocks()
        while file.tell() < size:
            file.writelines(next(blocks))


def _blocks() -> Iterator[list[bytes]]:
    alerts, others = 1000, 39
    lines = _lines(alerts, others)
    for seed in count(1):
        lines[:: others + 1] = _lines(alerts, 0, seed)
        yield lines


class _Watched(Suricata):
    """Records the peak memory of the process whenever it has read past a mark."""

    def __init__(self, settings: Any, tools: Tools, marks: list[int]) -> None:
        super().__init__(settings, tools)
        self.peaks = {0: _peak_memory()}
        self.marks = list(marks)
        """The remaining marks."""

    async def read(
        self, stream: str, position: Mapping[str, Any] | None, until: datetime
    ) -> AsyncGenerator[Page, None]:
        async with aclosing(super().read(stream, position, until)) as pages:
            async for page in pages:
                yield page
                # Now it is stored
                for mark in self.marks[:1]:
                    if page.covered and page.covered[-1].end >= mark * _GB:
                        self.peaks[self.marks.pop(0)] = _peak_memory()


def _sync_large(send: Callable[[Any], None], folder: str, path: Path, marks: list[int]) -> None:
    async def measure() -> None:
        url = URL.create("sqlite", database=folder)
        provider = _Watched(*_settings(path), marks)
        seconds, found = await _sync(lambda: url, provider)
        # Skipped for the last page of a sync round
        peaks = provider.peaks | dict.fromkeys(provider.marks, _peak_memory())
        send((peaks, seconds, found))

    asyncio.run(measure())


def _peak_memory() -> int:
    """Return KiB as reported by Linux; `getrusage` would include the parent."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])


async def _measure(kind: str, new_url: NewUrl, path: Path, rounds: int) -> None:
    found = 0
    size, lines = await asyncio.to_thread(_extent, path)

    async def ours() -> float:
        nonlocal found
        seconds, found = await _sync(new_url, Suricata(*_settings(path)))
        return lines / seconds

    async def bare() -> float:
        begin = time.perf_counter()
        with path.open("rb") as file:
            assert sum(1 for line in file if orjson.loads(line)) == lines
        return lines / (time.perf_counter() - begin)

    rates = await interleave({OURS: ours, "reading and parsing only": bare}, rounds)
    report_rates(f"{lines:,} lines, {size:.1f} MB, {found:,} incidents; {kind}", "lines", rates)
    typical = median(rates[OURS]) / lines
    print(f"Tocsin: {typical * size:.1f} MB/s, {typical * found:,.0f} incidents/s", flush=True)


def _extent(path: Path) -> tuple[float, int]:
    """Return a file's size in MB, and its number of lines."""
    content = path.read_bytes()
    return len(content) / 1e6, content.count(b"\n")


def _settings(path: Path) -> tuple[Suricata.Settings, Tools]:
    tools = Tools(name="sensors", http=None, clock=SystemClock(), log=structlog.get_logger())
    return Suricata.Settings(plugin="suricata", path=str(path)), tools


async def _sync(new_url: NewUrl, provider: Provider) -> tuple[float, int]:
    """Return the duration of a sync into a new database, and the number of its incidents."""
    database = await open_new(new_url)
    seconds = await read_all(provider, database)
    found = await database.read(count_incidents)
    await database.close()
    return seconds, found


async def read_all(provider: Provider, database: Database) -> float:
    """Return the number of seconds to store everything that the provider reads."""
    around = SyncContext(database, provider.tools.clock, Notifiers(), PUBLIC_URL)
    sync = ProviderSync(provider, around)
    begin = time.perf_counter()
    while await sync.read_all() == timedelta(0):  # more than one round
        pass
    return time.perf_counter() - begin


def count_incidents(connection: Connection) -> int:
    """Return the number of stored incidents."""
    return int(connection.execute(select(func.count()).select_from(incidents)).scalar_one())


def _lines(alerts: int, others: int, seed: int = 1) -> list[bytes]:
    """Return an EVE file's lines: two alerts for each incident, `others` flows for each alert."""
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

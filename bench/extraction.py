"""Entity extraction: speed beside a plain expression, and quality on labeled text."""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import process_time

from bench.comparison import OURS, interleave, report_rates
from tocsin.model import Entity, EntityKind
from tocsin.observables import find_observables

LABELLED = Path(__file__).parent / "observables"
LINES = 50_000
_IPV4 = re.compile(r"\b(?:[0-9]{1,3}\.){3}[0-9]{1,3}\b")
_TECHNIQUE = "technique"
_TEMPLATES = (
    (
        "Jan  7 {clock} {host} sshd[{pid}]: Failed password for invalid user {user} from {ip} port"
        " {port} ssh2"
    ),
    "Jan  7 {clock} {host} sshd[{pid}]: Accepted publickey for {user} from {ip} port {port} ssh2",
    (
        "Jan  7 {clock} gw kernel: [UFW BLOCK] IN=eth0 OUT= SRC={ip} DST={own} LEN=40 TTL=243"
        " ID={pid} PROTO=TCP SPT={port} DPT=22 WINDOW=1024 RES=0x00 SYN URGP=0"
    ),
    (
        'date=2026-01-07 time={clock} devname="FG-1" srcip={own} srcport={port} dstip={ip}'
        ' dstport=443 user="{user}" action="accept" sentbyte={pid} rcvdbyte={port}'
    ),
    (
        '{ip} - {user} [07/Jan/2026:{clock} +0000] "GET /shop/item.php?id={pid} HTTP/1.1" 200'
        ' {port} "https://{domain}/start" "Mozilla/5.0 (X11; Linux x86_64) Firefox/121.0"'
    ),
    "named[812]: client @0x7f1c {own}#{port} ({domain}): query: {domain} IN A +E(0)K (10.0.0.2)",
    (
        "2026-01-07T{clock}.{pid}Z {host} app[{pid}]: INFO worker-3 took job {pid} in {port} ms,"
        " queue length 17, nothing else to report"
    ),
    (
        r"EventID 1 Image: C:\Windows\System32\cmd.exe ParentImage: C:\Windows\explorer.exe User:"
        r" CORP\{user} ProcessId: {pid} LogonId: 0x{pid}"
    ),
)


def run(rounds: int) -> None:
    """Measure the rates on log lines with entities, then precision and recall."""
    lines = list(_log_lines())
    text = "\n".join(lines)
    variants = {
        OURS: partial(_rate, _each(find_observables), lines),
        "Tocsin, in one text": partial(_rate, _each(_all_of), [text]),
        "`re`, IPv4 addresses only": partial(_rate, _each(_IPV4.findall), lines),
    }
    report_rates("log lines", "MB", asyncio.run(interleave(variants, rounds)))
    for path in sorted(LABELLED.glob("*.jsonl")):
        _report(path)


def _all_of(text: str) -> object:
    return find_observables(text, limit=len(text))


def _log_lines() -> Iterator[str]:
    """Generate log lines with recurring entities: new times and ports, the same people."""
    choose = random.Random(1)
    addresses = [f"203.0.{a}.{b}" for a in range(113, 117) for b in range(1, 250)]
    domains = [f"{a}{b}.example.net" for a in ("www", "mail", "shop", "cdn") for b in range(50)]
    for second in range(LINES):
        yield choose.choice(_TEMPLATES).format(
            clock=f"{second // 3600 % 24:02}:{second // 60 % 60:02}:{second % 60:02}",
            host=f"web-{choose.randrange(40)}",
            pid=choose.randrange(1000, 60_000),
            port=choose.randrange(1024, 65_536),
            user=f"user{choose.randrange(300)}",
            ip=choose.choice(addresses),
            own=f"10.0.{choose.randrange(8)}.{choose.randrange(1, 250)}",
            domain=choose.choice(domains),
        )


def _each(function: Callable[[str], object]) -> Callable[[list[str]], None]:
    def each(texts: list[str]) -> None:
        for text in texts:
            function(text)

    return each


async def _rate(function: Callable[[list[str]], None], texts: list[str]) -> float:
    """Return megabytes per second of CPU time, which other programs disturb less."""
    begin = process_time()
    function(texts)
    return sum(map(len, texts)) / 1e6 / (process_time() - begin)


def _report(path: Path) -> None:
    """Print recall and precision for each kind of label."""
    right, surplus, missed = Counter[str](), Counter[str](), Counter[str]()
    for line in path.read_text().splitlines():
        labelled = json.loads(line)
        wanted, found = _labels(labelled), _found(labelled["text"])
        right.update(kind for kind, _ in wanted & found)
        surplus.update(kind for kind, _ in found - wanted)
        missed.update(kind for kind, _ in wanted - found)
    print(f"\n| {path.stem} | labels | precision | recall |\n|---|---:|---:|---:|")
    for kind in sorted(right | surplus | missed):
        _print_row(kind, right[kind], surplus[kind], missed[kind])
    _print_row("**all**", right.total(), surplus.total(), missed.total())


def _print_row(kind: str, right: int, surplus: int, missed: int) -> None:
    precision, recall = right / max(1, right + surplus), right / max(1, right + missed)
    print(f"| {kind} | {right + missed} | {precision:.3f} | {recall:.3f} |")


def _labels(labelled: dict[str, list[list[str]]]) -> set[tuple[str, str]]:
    entities = (Entity(EntityKind(kind), value) for kind, value in labelled["entities"])
    techniques = labelled.get("techniques", ())
    return {*map(_label, entities), *((_TECHNIQUE, str(one)) for one in techniques)}


def _found(text: str) -> set[tuple[str, str]]:
    observables = find_observables(text)
    techniques = ((_TECHNIQUE, one) for one in observables.techniques)
    return {*map(_label, observables.entities), *techniques}


def _label(entity: Entity) -> tuple[str, str]:
    """Return a comparable label: hosts, users and processes are case-insensitive."""
    return entity.kind.value, entity.value.lower()

"""Sample incidents, stored like those of a sync."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from hashlib import sha256

from tocsin import Alert, Entity, EntityKind, Incident, Page, Severity
from tocsin.incidents.coverage.positions import StreamKey
from tocsin.incidents.storage.alerts import IncidentPolicy
from tocsin.incidents.storage.store import store_page
from tocsin.store import Database

PAGE = 1000
PUBLIC_URL = "https://tocsin.example"
_BEGIN = datetime(2026, 11, 1, tzinfo=UTC)


async def fill(database: Database, provider: str, count: int, *, quiet: bool) -> None:
    """Store `count` incidents of a new provider; unless `quiet`, each with its event."""
    key, policy = StreamKey(provider, "changed"), IncidentPolicy(PUBLIC_URL, quiet=quiet)
    for revision, page in enumerate(_pages(count)):
        now = datetime.now(UTC)
        await database.write(store_page, key, page, revision=revision, policy=policy, now=now)


def _pages(count: int) -> Iterator[Page]:
    for start in range(0, count, PAGE):
        numbers = range(start, min(count, start + PAGE))
        incidents = tuple(map(_incident, numbers))
        yield Page(next_position={"number": start}, incidents=incidents, records=len(numbers))


def _incident(number: int) -> Incident:
    moment = _BEGIN + timedelta(seconds=number)
    host = f"WS-{number % 5000:04}"
    return Incident(
        external_id=f"case-{number}",
        external_number=str(100_000 + number),
        title=f"Suspicious PowerShell command line on {host}",
        description=f"A process on {host} ran an encoded command and opened connections. " * 3,
        severity=Severity.HIGH,
        raw_severity="high",
        raw_status="open",
        occurred_at=moment,
        changed_at=moment,
        source_url=f"https://siem.example/cases/{number}",
        techniques=("T1059.001", "T1071"),
        entities=tuple(_entities(number, host)),
        alerts=tuple(_alerts(number, moment)),
    )


def _entities(number: int, host: str) -> Iterable[Entity]:
    yield Entity(EntityKind.IP, f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}")
    yield Entity(EntityKind.HOST, host)
    yield Entity(EntityKind.USER, f"user{number % 3000}@corp.example")
    yield Entity(EntityKind.DOMAIN, f"c{number % 700}.bad.example")
    yield Entity(EntityKind.FILE_HASH, sha256(str(number).encode()).hexdigest())


def _alerts(number: int, moment: datetime) -> Iterable[Alert]:
    for which in range(2):
        yield Alert(
            external_id=f"{number}-{which}",
            title="Encoded PowerShell",
            severity=Severity.HIGH,
            occurred_at=moment,
        )

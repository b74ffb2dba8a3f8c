"""Bytes that one record of each kind takes, with its indexes, on both databases."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import sha256

import asyncpg
from sqlalchemy import URL, Connection, func, insert, select, text

from bench.databases import KINDS, new_urls, open_new
from bench.samples import fill
from tocsin import (
    Entity,
    EntityKind,
    FindEvents,
    FoundEvents,
    ListSources,
    Persona,
    ProviderSource,
    QueryOutcome,
    SiemEvent,
    Sources,
    Tools,
)
from tocsin.audit import AuditRecord, Sealer, record
from tocsin.clock import SystemClock
from tocsin.events import Notifiers
from tocsin.identifiers import new_id
from tocsin.investigations import (
    InvestigationWorker,
    LedgerCompaction,
    SourceReply,
    create_session,
    load_steps,
)
from tocsin.investigations.answers.history import HistoryAnswers
from tocsin.knowledge import SearchIndexer
from tocsin.model import Question
from tocsin.observables import Environment
from tocsin.retention.growth import measure_tables
from tocsin.store import Database
from tocsin.store.tables import attempts, coverage, deliveries, events, relations, session_steps
from tocsin_plugins.investigator import DefaultInvestigator

INCIDENTS = 2_000
ROWS = 2_000
EVENTS = 10
"""Events in each answer of the SIEM."""
_RESPONSE = b'{"status": "accepted", "id": "0123456789abcdef"}'
_OF_INCIDENT = (
    *("incidents", "incident_alerts", "incident_documents", "incident_entities"),
    "incident_techniques",
)
_OF_ENTITY = ("entities", "entity_names", "entity_providers")


def run(_rounds: int) -> None:
    """Measure every kind of record on every kind of database."""
    print("\n| Bytes per record |", *(f" {kind} |" for kind in KINDS), sep="")
    print("|---|" + "---:|" * len(KINDS))
    found = []
    for kind in KINDS:
        with new_urls(kind) as new_url:
            found.append(asyncio.run(_measure(new_url())))
    for name in found[0]:
        print(f"| {name} |", *(f" {figures[name]:,.0f} |" for figures in found), sep="", flush=True)


async def _measure(url: URL) -> dict[str, float]:
    database = await open_new(lambda: url)
    figures: dict[str, float] = {}

    async def take(names: dict[str, tuple[str, ...]], count: int, work) -> None:
        """Do the work, and record how much the tables of each name have grown for each record."""
        before = await _sizes(database)
        await work
        after = await _sizes(database)
        for name, tables in names.items():
            figures[name] = sum(after[table] - before[table] for table in tables) / count

    clock = SystemClock()
    await take(
        {
            "incident with 5 entities, 2 alerts, 2 techniques": _OF_INCIDENT,
            "event of an incident": ("events",),
        },
        INCIDENTS,
        fill(database, "siem", INCIDENTS, quiet=False),
    )
    indexer = SearchIndexer(database, clock, Notifiers())
    names = {
        "search document of the incident": ("documents",),
        "entities of the incident in the index": _OF_ENTITY,
    }
    await take(names, INCIDENTS, indexer.catch_up())
    names = {"delivery with one attempt": ("deliveries", "attempts")}
    await take(names, INCIDENTS, database.write(_add_deliveries))
    names = {"coverage row": ("coverage",), "audit entry": ("audit",)}
    await take(names, ROWS, _add_rows(database, clock))
    await _measure_hunts(database, url, clock, figures)
    await database.close()
    return figures


async def _measure_hunts(
    database: Database, url: URL, clock: SystemClock, figures: dict[str, float]
) -> None:
    """Measure the second of two hunts: the first makes the space that steps take meanwhile."""
    begun = await _sizes(database)
    first = await _investigate(database, clock, "incidents 1 to 20")
    running = (await _sizes(database))["session_steps"] - begun["session_steps"]
    edges = (await database.read(_count, first))[1]
    await _compact(database, url, clock, first)
    before = await _sizes(database)
    second = await _investigate(database, clock, "incidents 21 to 40")
    await _compact(database, url, clock, second)
    after = await _sizes(database)
    grown = {name: after[name] - before[name] for name in after}
    steps, more = await database.read(_count, second)
    figures["one hunt: session, messages, report"] = grown["sessions"] + grown["session_messages"]
    figures[f"one hunt: its {steps:,} steps"] = grown["session_steps"]
    figures["the steps of a running hunt, until it ends"] = running
    figures["the same steps, as JSON before compression"] = await database.read(
        _measure_plain, second
    )
    figures["step"] = grown["session_steps"] / steps
    relations_grown = grown["relations"] + grown["relation_sources"]
    figures["edge with its source"] = relations_grown / (more - edges)


async def _compact(database: Database, url: URL, clock: SystemClock, session_id: str) -> None:
    """Compact a ledger, and make the space of its steps reusable as autovacuum does."""
    await LedgerCompaction(database, clock).compact(session_id)
    if url.get_backend_name() == "postgresql":
        connection = await asyncpg.connect(url.render_as_string(hide_password=False))
        await connection.execute("VACUUM session_steps")
        await connection.close()


async def _sizes(database: Database) -> dict[str, int]:
    if database.__class__.__name__ == "PostgresDatabase":
        await database.write(lambda connection: connection.execute(text("ANALYZE")) and None)
    return await database.read(measure_tables)


def _add_deliveries(connection: Connection) -> None:
    now = datetime.now(UTC)
    rows, tried = [], []
    for id_, subject in connection.execute(select(events.c.id, events.c.subject)).all():
        delivery = new_id("dlv")
        rows.append(
            {
                "id": delivery,
                "event_id": id_,
                "destination": "soar",
                "subject": subject,
                "state": "delivered",
                "attempts": 1,
                "schedule_start": 0,
                "due_at": now,
                "remote_id": delivery[-8:],
                "remote_url": f"https://soar.example/cases/{delivery[-8:]}",
                "created_at": now,
                "finished_at": now,
            }
        )
        attempt = {"delivery_id": delivery, "number": 1, "started_at": now, "duration_ms": 40}
        tried.append(attempt | {"outcome": "delivered", "status": 200, "response": _RESPONSE})
    connection.execute(insert(deliveries), rows)
    connection.execute(insert(attempts), tried)


async def _add_rows(database: Database, clock: SystemClock) -> None:
    await database.write(_add_coverage)
    entries = [
        AuditRecord(
            at=clock.now(),
            actor="ana@corp.example",
            action="destination.update",
            target="destination:soar",
            address="10.0.0.7",
            request_id=new_id("req"),
            details={"changed": ["filter", "template"]},
        )
        for _ in range(ROWS)
    ]
    await database.write(record, *entries)
    await Sealer(database, b"k" * 32, clock).seal()


def _add_coverage(connection: Connection) -> None:
    now = datetime.now(UTC)
    counts = dict.fromkeys(("records", "new", "changed", "rejected"), 0)
    rows = [
        {
            **counts,
            "provider": "siem",
            "stream": "changed",
            "source": "changed",
            "unit": "time",
            "start": number * 3_600_000_000,
            "end": (number + 1) * 3_600_000_000,
            "outcome": "read",
            "past": False,
            "pages": 60,
            "started_at": now,
            "finished_at": now,
        }
        for number in range(ROWS)
    ]
    connection.execute(insert(coverage), rows)


async def _investigate(database: Database, clock: SystemClock, query: str) -> str:
    """Run a hunt of the default investigator to its end, and return its session."""
    history = HistoryAnswers(database, {}, Environment())

    async def answer(question: Question) -> SourceReply:
        match question:
            case ListSources():
                provider = ProviderSource(name="siem", answers_events=True)
                sources = Sources(providers=(provider,), enrichers=())
                return SourceReply(QueryOutcome.ANSWERED, sources)
            case FindEvents():
                return SourceReply(QueryOutcome.ANSWERED, _find_events(question))
        return await history(question)

    tools = Tools(name="investigator", http=None, clock=clock, log=None)
    investigator = DefaultInvestigator(DefaultInvestigator.Settings(), tools)
    given = {"persona": Persona.THREAT_HUNTER, "provider": None, "by": "bench", "now": clock.now()}
    session_id = await database.write(create_session, query=query, **given)
    node = InvestigationWorker(
        database, clock, Notifiers(), 1, investigator=investigator, answer=answer
    )
    await node.claim()
    await asyncio.gather(*node._tasks.values())  # noqa: SLF001 - the run, whose end is awaited
    return session_id


def _find_events(question: FindEvents) -> FoundEvents:
    """Return firewall events of an entity, each with values of its own."""
    number = int(sha256(question.entity.value.encode()).hexdigest()[:6], 16)
    build: Callable[[int], SiemEvent] = partial(_build_event, question, number)
    return FoundEvents(events=tuple(map(build, range(EVENTS))), complete=True)


def _build_event(question: FindEvents, number: int, place: int) -> SiemEvent:
    target = f"198.51.100.{(number + place) % 250}"
    return SiemEvent(
        external_id=sha256(f"{number}-{place}".encode()).hexdigest()[:24],
        occurred_at=question.window.start + timedelta(seconds=61 * place + number % 60),
        summary=f"Connection from {question.entity.value} to {target}:443 allowed",
        entities=(question.entity, Entity(EntityKind.IP, target)),
        fields={
            "src_port": 49_152 + (number * 7 + place) % 16_000,
            "dest_port": 443,
            "proto": "TCP",
            "rule": "allow-outbound",
            "sensor": "edge-1",
            "bytes_out": number * (place + 3) % 90_000,
            "bytes_in": number * (place + 5) % 900_000,
        },
    )


def _count(connection: Connection, session_id: str) -> tuple[int, int]:
    own = session_steps.c.session_id == session_id
    steps = connection.scalar(select(func.sum(session_steps.c.steps)).where(own))
    edges = connection.scalar(select(func.count()).select_from(relations))
    return steps or 0, edges or 1


def _measure_plain(connection: Connection, session_id: str) -> int:
    steps = load_steps(connection, session_id)
    return sum(len((step.question or "") + (step.answer or "")) for step in steps)

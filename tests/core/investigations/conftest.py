"""Scripted investigators, and nodes that run them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime, timedelta

import pytest
import structlog
from sqlalchemy import select

from tocsin import Entity, EntityKind, Investigator, Severity, Tools
from tocsin.errors import InvestigationFailed
from tocsin.events import Notifiers
from tocsin.investigations import (
    InvestigationWorker,
    SourceReply,
    add_message,
    cancel_session,
    create_session,
    load_steps,
)
from tocsin.model import (
    Confidence,
    Disposition,
    Enrichment,
    EntityAssessment,
    FindEvents,
    Finding,
    FoundEvents,
    GetEnrichments,
    Marking,
    Match,
    Persona,
    Phase,
    QueryOutcome,
    QueryResult,
    Question,
    Relation,
    RelationType,
    Report,
    SearchHistory,
    SiemEvent,
    Statement,
    Verdict,
    Window,
)
from tocsin.store.tables import sessions

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
WINDOW = Window(BEGIN, BEGIN + timedelta(days=1))
BAD, OURS = Entity(EntityKind.IP, "203.0.113.9"), Entity(EntityKind.HOST, "web-1")
EVERYWHERE = [FindEvents(provider=f"siem-{n}", entity=BAD, window=WINDOW) for n in range(3)]


def events(question: FindEvents) -> FoundEvents:
    link = Relation(source=question.entity, type=RelationType.CONNECTED_TO, target=OURS)
    event = SiemEvent(
        external_id=question.provider,
        occurred_at=BEGIN,
        summary="a connection",
        entities=(question.entity, OURS),
        relations=(link,),
        fields={"port": 22, "note": "x\0y"},
    )
    return FoundEvents(events=(event,), complete=True)


class Source:
    """Answers every question, and counts how often each was asked."""

    def __init__(self) -> None:
        self.asked: list[Question] = []
        self.away: set[str] = set()
        self.gate: asyncio.Event | None = None
        self.entered = asyncio.Event()

    async def __call__(self, question) -> SourceReply:
        self.asked.append(question)
        self.entered.set()
        if self.gate is not None:
            await self.gate.wait()
        if question.asked_of in self.away:
            return SourceReply(QueryOutcome.UNAVAILABLE, reason="it is away")
        match question:
            case FindEvents():
                return SourceReply(QueryOutcome.ANSWERED, events(question))
            case GetEnrichments():
                known = Enrichment(entity=BAD, summary="bad", disposition=Disposition.MALICIOUS)
                return SourceReply(QueryOutcome.ANSWERED, (known,))
            case _:
                match = Match(kind="incident", id="7", title=question.text, score=1.5)
                return SourceReply(QueryOutcome.ANSWERED, (match,))


class Inquisitive(Investigator):
    """Asks one thing, then several at once, concludes, and reports all that it was told."""

    async def investigate(self, inquiry, client) -> Report:
        words = inquiry.messages[-1]
        client.enter(Phase.UNDERSTAND)
        first = await client.ask(SearchHistory(text=words))
        if words == "fail":
            raise InvestigationFailed("incident 404 does not exist")
        if words == "break":
            raise KeyError("a secret")
        first_step = await client.conclude(f"it is about {first.content[0].title}", [first.step])
        client.enter(Phase.GATHER)
        found = await client.ask_all(EVERYWHERE)
        more = await client.ask(
            GetEnrichments(enricher="lists", entities=(BAD,), marking=Marking())
        )
        client.enter(Phase.REPORT)
        last = await client.conclude("it is bad", [more.step, first_step])
        return report_of(inquiry, found, last, client.elapsed)


def report_of(inquiry, found: list[QueryResult], last: str, elapsed: timedelta) -> Report:
    gaps = [
        Statement(f"{result.reason}", (result.step,)) for result in found if result.content is None
    ]
    facts = [
        Statement(str(result.content), (result.step,))
        for result in found
        if result.content is not None
    ]
    previous = "" if inquiry.previous is None else inquiry.previous.title
    finding = Finding(
        id="F1", kind="k", title="t", severity=Severity.HIGH, statements=(*facts,), entities=(BAD,)
    )
    return Report(
        title=f"{inquiry.messages[-1]} after {previous}",
        query=inquiry.messages[0],
        persona=inquiry.persona,
        window=WINDOW,
        verdict=Verdict.MALICIOUS,
        confidence=Confidence.HIGH,
        risk_score=70.0,
        summary=(Statement(f"It is bad, after {elapsed}.", (last,)),),
        findings=(finding,),
        entities=tuple(
            EntityAssessment(entity=entity, disposition=Disposition.UNKNOWN)
            for entity in (BAD, OURS)
        ),
        incidents=(1, 7) if "with 1" in inquiry.messages[-1] else (7,),
        about=(7,) if "#7" in inquiry.messages[-1] else (),
        gaps=tuple(gaps),
    )


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture
def investigator(clock) -> Investigator:
    tools = Tools(name="investigator", http=None, clock=clock, log=structlog.get_logger())
    return Inquisitive(Inquisitive.Settings(), tools)


@pytest.fixture
def make_node(database, clock, source, investigator) -> Callable[..., InvestigationWorker]:
    def make(number: int = 1, **members) -> InvestigationWorker:
        usual = {"investigator": investigator, "answer": source}
        on = members.pop("database", database)
        return InvestigationWorker(on, clock, Notifiers(), number, **{**usual, **members})

    return make


@pytest.fixture
def finish(make_node):
    async def finish(node: InvestigationWorker | None = None, **members) -> None:
        """Have a node take up what waits, and do it to its end."""
        node = node or make_node(**members)
        await node.claim()
        await asyncio.gather(*node._tasks.values())

    return finish


@pytest.fixture
def begin(make_node, source):
    async def begin(number: int = 1) -> InvestigationWorker:
        """Return a node that has asked its first question, which nobody answers."""
        source.gate = asyncio.Event()
        source.entered.clear()
        node = make_node(number)
        await node.claim()
        await source.entered.wait()
        return node

    return begin


@pytest.fixture
def settle():
    async def settle(node: InvestigationWorker) -> None:
        """Have a node look after what it runs, and wait for what it then stops."""
        tasks = list(node._tasks.values())
        await node.keep()
        await asyncio.gather(*tasks, return_exceptions=True)

    return settle


@pytest.fixture
def send(database, clock):
    async def send(session_id: str, text: str) -> None:
        await database.write(add_message, session_id, text, "ana", clock.now())

    return send


@pytest.fixture
def cancel(database, clock):
    async def cancel(session_id: str) -> None:
        await database.write(cancel_session, session_id, clock.now())

    return cancel


@pytest.fixture
def start(database, clock):
    async def start(query: str = "look", **members) -> str:
        usual = {"persona": Persona.ANALYST, "provider": None, "by": "ana", "now": clock.now()}
        return await database.write(create_session, query=query, **{**usual, **members})

    return start


@pytest.fixture
def rows(database):
    async def rows(table, *conditions) -> list:
        def read(connection):
            query = select(table).where(*conditions).order_by(*table.primary_key.columns)
            return list(connection.execute(query).mappings())

        return await database.read(read)

    return rows


@pytest.fixture
def session(rows):
    async def session(session_id: str):
        [row] = await rows(sessions, sessions.c.id == session_id)
        return row

    return session


_NOT_COMPARED = {"session_id", "started_at", "duration_ms"}


@pytest.fixture
def ledger(database):
    async def ledger(session_id: str) -> list[dict]:
        found = map(asdict, await database.read(load_steps, session_id))
        return [{k: v for k, v in step.items() if k not in _NOT_COMPARED} for step in found]

    return ledger

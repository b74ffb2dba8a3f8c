"""Cost of an investigation itself, with sources that answer immediately."""

from __future__ import annotations

import asyncio
import sys
import time
from collections import defaultdict
from datetime import timedelta
from pathlib import Path
from statistics import median

from tocsin import (
    Disposition,
    Enrichment,
    Entity,
    FindEvents,
    FoundEvents,
    Persona,
    QueryOutcome,
    QueryResult,
    Question,
    Relation,
    RelationType,
    Severity,
    SiemEvent,
    Tools,
)
from tocsin_plugins.investigator import DefaultInvestigator

sys.path.append(str(Path(__file__).parents[1] / "tests/plugins/investigator"))

from investigator_world import World, WorldQueryClient, ago, event, host, incident, inquire, ip

ENTITIES = 200
_INCIDENTS = 20
_EVENTS = 20  # for each entity and each of two providers
_PROVIDERS = ("edge", "core")


class _Instant(WorldQueryClient):
    """Finds the events of an entity without a scan."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._events: defaultdict[tuple[str, Entity], list[SiemEvent]] = defaultdict(list)
        for provider, events in world.events.items():
            for logged in events:
                for entity in logged.entities:
                    self._events[provider, entity].append(logged)

    def _answer(self, question: Question) -> QueryResult:
        if not isinstance(question, FindEvents):
            return super()._answer(question)
        self.asked.append(question)
        found = tuple(self._events[question.provider, question.entity][: question.limit])
        content = FoundEvents(events=found, complete=True)
        return QueryResult(step=self._step(), outcome=QueryOutcome.ANSWERED, content=content)


def run(rounds: int) -> None:
    """Measure an investigation of incidents with the maximum number of examined entities."""
    world = _world()
    seconds = []
    for _ in range(rounds):
        begin = time.perf_counter()
        examined, asked = asyncio.run(_investigate(world))
        seconds.append(time.perf_counter() - begin)
    print(
        f"\ninvestigating {examined} entities, {asked} questions, all answered immediately: "
        f"{median(seconds):.2f} s (from {min(seconds):.2f} to {max(seconds):.2f})",
        flush=True,
    )


async def _investigate(world: World) -> tuple[int, int]:
    client = _Instant(world)
    bounds = {"incident-responder": {"entities": ENTITIES, "provider_calls": 2 * ENTITIES}}
    settings = DefaultInvestigator.Settings.model_validate({"bounds": bounds})
    tools = Tools(name="investigator", http=None, clock=None, log=None)
    inquiry = inquire("incident 1", persona=Persona.INCIDENT_RESPONDER)
    report = await DefaultInvestigator(settings, tools).investigate(inquiry, client)
    return len(report.entities), len(client.asked)


def _world() -> World:
    outside = [ip(f"203.0.113.{number}") for number in range(ENTITIES // 2)]
    ours = [host(f"pc-{number}") for number in range(ENTITIES - len(outside))]
    records = [
        incident(
            number + 1,
            f"brute force {number}",
            severity=Severity.HIGH,
            occurred_at=ago(hours=20 - number / 2),
            techniques=(("T1595", "T1190", "T1110", "T1071")[number % 4],),
            entities=tuple(outside[number::_INCIDENTS] + ours[number::_INCIDENTS] + outside[:3]),
        )
        for number in range(_INCIDENTS)
    ]
    opinions = [
        Enrichment(entity=entity, summary="listed", disposition=Disposition.MALICIOUS)
        for entity in outside[::3]
    ]
    events = {name: _events(outside, ours, name) for name in _PROVIDERS}
    return World(incidents=records, events=events, opinions={"lists": opinions, "more": opinions})


def _events(outside: list[Entity], ours: list[Entity], provider: str) -> list[SiemEvent]:
    return [
        event(
            f"Failed password at {provider}" if number % 5 else f"Accepted password at {provider}",
            ago(hours=10) + timedelta(seconds=7 * number + place),
            source,
            target,
            relations=(Relation(source=source, type=RelationType.CONNECTED_TO, target=target),),
        )
        for place, (source, target) in enumerate(zip(outside, ours, strict=True))
        for number in range(_EVENTS)
    ]

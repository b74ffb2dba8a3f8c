"""An enricher that says what it is told to, and notes what it was asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from tocsin import Disposition, Enricher, Enrichment, Entity, EntityKind
from tocsin.enrichment import Enrichers
from tocsin.observables import Environment, EnvironmentSettings
from tocsin.testing import loopback_client, make_tools


@dataclass
class Script:
    """What the enricher is to say or to raise, and what it was asked for."""

    known: dict[str, Enrichment] = field(default_factory=dict)
    errors: dict[str, BaseException] = field(default_factory=dict)
    asked: list[list[str]] = field(default_factory=list)
    returned: Any = None

    def tell(self, entity: Entity, **parts: Any) -> None:
        parts = {"summary": "Seen.", "disposition": Disposition.SUSPICIOUS, **parts}
        self.known[entity.value] = Enrichment(entity=entity, **parts)

    @property
    def values(self) -> list[str]:
        return sorted(value for batch in self.asked for value in batch)


class Source(Enricher):
    name = "source"
    kinds = frozenset({EntityKind.IP, EntityKind.DOMAIN, EntityKind.URL})
    script: Script

    async def enrich(self, entities):
        values = [entity.value for entity in entities]
        self.script.asked.append(values)
        for value in values:
            if value in self.script.errors:
                raise self.script.errors[value]
        if self.script.returned is not None:
            return self.script.returned
        return [self.script.known[value] for value in values if value in self.script.known]


Make = Callable[..., tuple[Enrichers, Script]]


def make_source(clock, *, online=False, batch=1, **settings):
    """Return an enricher and its script."""
    script = Script()
    kind = type("Made", (Source,), {"online": online, "batch": batch, "script": script})
    made = kind(
        Source.Settings(plugin="test", **settings), make_tools(loopback_client(), clock=clock)
    )
    return made, script


@pytest.fixture
def make(database, clock) -> Make:
    """Make enrichers of one source, which is called `source`."""

    def made(*, internal_domains=("corp.example",), meters=None, markings=None, **options):
        source, script = make_source(clock, **options)
        environment = Environment(EnvironmentSettings(internal_domains=internal_domains))
        enrichers = Enrichers(
            {"source": source}, environment, database, clock, meters, markings=markings or {}
        )
        return enrichers, script

    return made

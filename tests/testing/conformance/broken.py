"""Broken variants of the example provider, with the rules that each one breaks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from simulator import ExampleSimulator
from tocsin_example.provider import ExampleProvider

from tocsin import HttpResponse, Listing, Provider, Window
from tocsin.testing.conformance import ProviderConformance
from tocsin.testing.conformance.harness import Conformance
from tocsin.testing.conformance.rules import RuleBroken

NOTHING = Listing(records=())


class ExampleConformance(ProviderConformance):
    provider = ExampleProvider
    simulator = ExampleSimulator

    def settings(self, url: str) -> dict[str, str]:
        return {"url": url, "client_id": "tocsin", "client_secret": "a secret"}


class Broken:
    """A table of providers, by the rules that each of them breaks."""

    def __init__(self, suite: type[Conformance]) -> None:
        self.suite = suite
        self.table: list[tuple[frozenset[str], type[Provider]]] = []

    def breaks(self, *rules: str) -> Callable[[type[Provider]], type[Provider]]:
        """Enter a provider: it breaks these rules and keeps all others."""

        def enter(kind: type[Provider]) -> type[Provider]:
            self.table.append((frozenset(rules), kind))
            return kind

        return enter

    def params(self) -> list[Any]:
        return [pytest.param(self, *row, id=row[1].__name__) for row in self.table]


def rules_of(suite: type) -> list[str]:
    """Return the names of a suite's rules."""
    return [name for name in dir(suite) if name.startswith("test_")]


def broken_rules(suite: type, kind: type, rules: list[str], tried_as: str = "provider") -> set[str]:
    """Return which of these rules a provider breaks; one that does not apply is not broken."""
    tried = type(suite.__name__, (suite,), {tried_as: kind})()
    return {rule for rule in rules if not _is_kept(getattr(tried, rule))}


def _is_kept(rule: Callable[[], None]) -> bool:
    try:
        rule()
    except RuleBroken as broken:
        # such as a class of Tocsin without a method of that name: it breaks for another reason
        return "type object" in str(broken)
    except pytest.skip.Exception:
        return True
    return True


EXAMPLE = Broken(ExampleConformance)
breaks = EXAMPLE.breaks


class Records(ExampleProvider):
    """Sees each record otherwise than it is: override `see`."""

    def see(self, record: Mapping[str, Any]) -> Mapping[str, Any]:
        return record

    def to_incident(self, record):
        return super().to_incident(self.see(record))


class Incidents(ExampleProvider):
    """Makes other incidents of records: override `make`."""

    def make(self, incident, record):
        return incident

    def to_incident(self, record):
        return self.make(super().to_incident(record), record)


class Answers(ExampleProvider):
    """Takes the SIEM's answers for others: override `take`."""

    def __init__(self, settings, tools):
        super().__init__(settings, replace(tools, http=_Changed(tools.http, self.take)))

    def take(self, response: HttpResponse) -> HttpResponse:
        return response


class _Changed:
    def __init__(self, http, take):
        self._http = http
        self._take = take

    async def request(self, *args, **options):
        return self._take(await self._http.request(*args, **options))


class Lists(ExampleProvider):
    """Lists otherwise: override `listed`, which begins with `self.ask`."""

    async def list_changes(self, stream, window, token, limit):
        async def ask(window: Window = window, token: Any = token) -> Listing:
            return await super(Lists, self).list_changes(stream, window, token, limit)

        return await self.listed(ask, window, token)

    async def listed(self, ask, window, token):
        return await ask()


class Pages(ExampleProvider):
    """Yields other pages: override `changed_page`."""

    async def read(self, stream, position, until):
        async for page in super().read(stream, self.given(position), until):
            yield self.changed_page(page)

    def given(self, position):
        return position

    def changed_page(self, page):
        return page


def is_past(provider: Provider, window: Window) -> bool:
    """Whether a window is one of a backfill."""
    age = provider.tools.clock.now() - window.end
    return age.total_seconds() > 10 * 3600

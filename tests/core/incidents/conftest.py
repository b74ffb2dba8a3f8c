"""A provider that does as its script says, and the sync of it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import structlog
from sqlalchemy import Table, select

from tocsin import (
    Covered,
    Duration,
    Entity,
    EntityKind,
    Health,
    Incident,
    Page,
    Provider,
    Severity,
    Tools,
    Window,
)
from tocsin.events import Notifiers
from tocsin.incidents import ProviderSync, SyncContext

PUBLIC_URL = "https://tocsin.example.org"
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def incident(number: int, **values: Any) -> Incident:
    usual = {"title": f"number {number}", "severity": Severity.HIGH, "occurred_at": BEGIN}
    return Incident(external_id=str(number), **{**usual, **values})


class Archive(Provider):
    """Has one incident an hour since its beginning, and all of its past."""

    class Settings(Provider.Settings):
        refresh_after: tuple[Duration, ...] = ()

    def __init__(self, settings: Any, tools: Tools) -> None:
        super().__init__(settings, tools)
        self.errors: list[Exception] = []
        self.asked: list[tuple[str, Any]] = []
        self.again: list[str] = []
        self.gone: set[str] = set()
        self.lost: list[Covered] = []

    async def check(self) -> Health:
        return Health(detail="there")

    async def read(
        self, stream: str, position: Mapping[str, Any] | None, until: datetime
    ) -> AsyncGenerator[Page, None]:
        self.asked.append(("read", position))
        start = datetime.fromisoformat(position["at"]) if position else until - timedelta(hours=1)
        if start < until:
            covered = (Covered(source=stream, start=start, end=until), *self.lost)
            yield Page(next_position={"at": until.isoformat()}, covered=covered, records=1)
            self.lost = []

    async def backfill(
        self, stream: str, position: Mapping[str, Any] | None, window: Window
    ) -> AsyncGenerator[Page, None]:
        self.asked.append(("backfill", position))
        at = datetime.fromisoformat(position["at"]) if position else window.start
        while at < window.end:
            if self.errors:
                raise self.errors.pop(0)
            end = min(at + timedelta(hours=1), window.end)
            found = incident(int(at.timestamp()), occurred_at=at)
            covered = (Covered(source=stream, start=at, end=end),)
            at = end
            yield Page(
                next_position={"at": at.isoformat()},
                incidents=(found,),
                covered=covered,
                records=1,
            )

    async def incident(self, external_id: str) -> Incident | None:
        self.again.append(external_id)
        if self.errors:
            raise self.errors.pop(0)
        if external_id in self.gone:
            return None
        return incident(
            int(external_id), entities=(Entity(EntityKind.IP, f"10.0.0.{len(self.again)}"),)
        )


@pytest.fixture
def around(database, clock) -> SyncContext:
    return SyncContext(database, clock, Notifiers(), PUBLIC_URL, jitter=lambda: 0.0)


@pytest.fixture
def make_archive(around) -> Callable[..., ProviderSync]:
    def make(name: str = "archive", **settings: Any) -> ProviderSync:
        tools = Tools(name=name, http=None, clock=around.clock, log=structlog.get_logger())
        provider = Archive(Archive.Settings(plugin="archive", **settings), tools)
        sync = ProviderSync(provider, around)
        sync.provider = provider
        return sync

    return make


@pytest.fixture
def rows(database):
    async def rows(table: Table) -> list:
        def read(connection):
            query = select(table).order_by(*table.primary_key.columns)
            return list(connection.execute(query).mappings())

        return await database.read(read)

    return rows

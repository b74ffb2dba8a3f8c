"""Fixtures of the tests of the audit log: entries, a sealer, and a hand that tampers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager

import pytest
from sqlalchemy import Connection, text

from tocsin.audit import AuditRecord, Sealer, record, verify

KEY = b"k" * 32


@pytest.fixture
def make_entry(clock):
    def make(action: str = "api-key.create", **changes) -> AuditRecord:
        values = {"at": clock.now(), "actor": "ann", "address": "192.0.2.1", "request_id": "r1"}
        return AuditRecord(action=action, **values | changes)

    return make


@pytest.fixture
def add(database, make_entry):
    async def add(*actions: str, **changes) -> None:
        await database.write(record, *(make_entry(action, **changes) for action in actions))

    return add


@pytest.fixture
def sealer(database, clock) -> Sealer:
    return Sealer(database, KEY, clock)


@pytest.fixture
def check(database, clock):
    async def check(key: bytes = KEY, **options):
        return await database.read(verify, key, now=clock.now(), **options)

    return check


def _without_triggers(connection: Connection, statements: tuple[str, ...]) -> None:
    on = "" if connection.dialect.name == "sqlite" else " ON audit"
    for trigger in ("audit_update", "audit_seal", "audit_delete", "audit_replace"):
        connection.execute(text(f"DROP TRIGGER IF EXISTS {trigger}{on}"))
    for statement in statements:
        connection.execute(text(statement))


@pytest.fixture
def tamper(database):
    """Change the log as only its owner can: with the triggers out of the way."""

    async def tamper(*statements: str) -> None:
        await database.write(_without_triggers, statements)

    return tamper


@pytest.fixture
def running():
    """Run a loop beside the block, and cancel it at its end."""

    @asynccontextmanager
    async def running(loop: Coroutine) -> AsyncIterator[None]:
        task = asyncio.create_task(loop)
        try:
            async with asyncio.timeout(10):
                yield
        finally:
            task.cancel()
            await asyncio.wait([task])
        assert task.cancelled()

    return running

"""Nodes that are present in a PostgreSQL database, and do nothing else."""

# ruff: noqa: ASYNC110 - it waits for another connection
from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sqlalchemy import URL

from tocsin.store import Database, open_database


@asynccontextmanager
async def attending(url: URL, number: int) -> AsyncIterator[tuple[Database, Counter[str]]]:
    """Give a database that a node attends, and how often it has heard of each topic."""
    database, heard, has_joined = open_database(url), Counter[str](), asyncio.Event()

    def hear(topic: str) -> None:
        heard[topic] += 1
        has_joined.set()

    task = asyncio.create_task(database.attend(number, hear))
    await has_joined.wait()
    try:
        yield database, heard
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await database.close()


async def until_heard(heard: Counter[str], topic: str) -> None:
    """Return once a topic was announced."""
    async with asyncio.timeout(20):
        while not heard[topic]:
            await asyncio.sleep(0.005)

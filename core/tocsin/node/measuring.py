"""Gauges of what the database says, read whenever someone asks for the metrics."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from tocsin.metrics import Metrics
from tocsin.store import Database

T = TypeVar("T")
_PATIENCE = 2  # seconds; whoever asks for metrics does not wait for ever


def register_database_gauges(
    metrics: Metrics,
    database: Database,
    load: Callable[[Connection], T],
    show: Callable[[T], None],
    clear: Callable[[], None],
) -> None:
    """Have what `load` returns be shown, and nothing where the database does not answer in time."""

    async def read() -> None:
        try:
            async with asyncio.timeout(_PATIENCE):
                found = await database.read(load)
        except (TimeoutError, SQLAlchemyError, OSError):
            clear()
        else:
            show(found)

    metrics.read_by(read)

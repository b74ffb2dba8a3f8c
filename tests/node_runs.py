"""Nodes that run in the process of a test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from end_to_end.service import until
from tocsin.clock import SystemClock
from tocsin.node import ServiceNode, apply_file, open_node
from tocsin.settings import Settings


@asynccontextmanager
async def running(settings: Settings, **options: Any) -> AsyncIterator[ServiceNode]:
    """Give a node that runs; on PostgreSQL its file is applied first."""
    async with open_node(settings, **options) as node:
        now = SystemClock().now()
        await node.database.write(apply_file, node.configuration, "test", now)
        stop = asyncio.Event()
        task = asyncio.create_task(node.run(stop))
        try:
            await until(lambda: all(node.state.roles.values()))
            yield node
        finally:
            stop.set()
            await task

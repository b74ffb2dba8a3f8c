"""Manual control of a delivery worker."""

from __future__ import annotations

import asyncio

from tocsin.delivery.sending.worker import Worker


async def flush(worker: Worker) -> None:
    """Return when nothing is under way any more, and all of it is stored."""
    while worker._under_way:
        await asyncio.wait(worker._under_way, timeout=1)
        if worker._under_way:
            await worker.settle()  # attempts wait if too many results are not stored
    await worker.settle()

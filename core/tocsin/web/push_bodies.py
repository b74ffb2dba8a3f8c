"""Bodies of pushes, bounded in memory on the node and by address."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from tocsin.web.problems import BODY_TIMEOUT
from tocsin.web.record_problems import PUSH_TOO_LARGE, PUSHES_UNDER_WAY
from tocsin.web.request_problems import BODY_TOO_SLOW

MAX_BYTES = 64 * 2**20
"""The most bytes of bodies on a node at once."""
MAX_BYTES_UNPROVEN = 16 * 2**20
"""The most bytes from one address whose credentials depend on the body."""
RETRY_AFTER = 5


class PushBodies:
    """Reads bodies, and counts their bytes until the push is complete."""

    def __init__(self) -> None:
        self._all = 0
        self._unproven: Counter[str] = Counter()

    @asynccontextmanager
    async def receive(
        self, request: web.Request, limit: int, address: str | None
    ) -> AsyncIterator[bytes]:
        """Read the body of a request, of at most `limit` bytes, and hold it.

        `address` is that of a sender whose credentials depend on the body. Raises ProblemError
        (408, 413), and 503 while other bodies need the memory: senders repeat after 5xx.
        """
        chunks: list[bytes] = []
        size = 0
        if (request.content_length or 0) > limit:
            raise _too_large(limit)
        try:
            async with asyncio.timeout(BODY_TIMEOUT):
                while chunk := await request.content.readany():
                    size += len(chunk)
                    self._count(len(chunk), address)
                    if size > limit:
                        raise _too_large(limit)
                    self._require_memory(address)
                    chunks.append(chunk)
            body = b"".join(chunks)
            chunks.clear()
            yield body
        except TimeoutError:
            raise BODY_TOO_SLOW.error() from None
        finally:
            self._count(-size, address)

    def _count(self, size: int, address: str | None) -> None:
        self._all += size
        if address is not None:
            self._unproven[address] += size
            if not self._unproven[address]:
                del self._unproven[address]

    def _require_memory(self, address: str | None) -> None:
        unproven = 0 if address is None else self._unproven[address]
        if self._all > MAX_BYTES or unproven > MAX_BYTES_UNPROVEN:
            raise PUSHES_UNDER_WAY.error({"Retry-After": str(RETRY_AFTER)}, seconds=RETRY_AFTER)


def _too_large(limit: int) -> Exception:
    return PUSH_TOO_LARGE.error(most=f"{limit // 2**20} MiB")

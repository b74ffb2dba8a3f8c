"""Bodies of pushes, with limits on how much memory they use per node and per address."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from tocsin.web.client_addresses import address_key
from tocsin.web.parsing import require_encoding
from tocsin.web.problems import BODY_TIMEOUT, ProblemType
from tocsin.web.record_problems import PUSH_TOO_LARGE, PUSHES_UNDER_WAY, WEBHOOK_TOO_LARGE
from tocsin.web.request_problems import BODY_TOO_SLOW

MAX_BYTES = 64 * 2**20
"""Maximum total size of the bodies on a node, in bytes."""
MAX_BYTES_UNPROVEN = 32 * 2**20
"""Maximum total size of the bodies from unauthenticated senders, in bytes."""
MAX_BYTES_UNPROVEN_FROM_ADDRESS = 16 * 2**20
MAX_UNPROVEN = 128
"""Maximum number of such bodies."""
MAX_UNPROVEN_FROM_ADDRESS = 16
WEBHOOK_LIMIT = 2 * 2**20
"""Maximum size of a webhook's body, in bytes; it can repeat the whole ticket three times."""
RETRY_AFTER = 5


class PushBodies:
    """Reads bodies, and counts them and their bytes until the push is complete.

    Unauthenticated senders can use only the share for unproven bodies.
    """

    def __init__(self) -> None:
        self._all = 0
        self._unproven: Counter[str] = Counter()
        self._bodies: Counter[str] = Counter()

    @property
    def under_way(self) -> int:
        """Current number of bodies from unauthenticated senders."""
        return self._bodies.total()

    @asynccontextmanager
    async def receive(
        self,
        request: web.Request,
        limit: int,
        address: str | None,
        too_large: ProblemType = PUSH_TOO_LARGE,
    ) -> AsyncIterator[bytes]:
        """Read a request's body, of at most `limit` bytes, and count it until the context ends.

        Pass the sender's `address` if the credentials depend on the body (a signature), which can
        then be at most 16 MiB. Raises ProblemError: 408, 413, 415, or, while other bodies use up
        the memory, 503, because senders repeat requests after a 5xx response.
        """
        require_encoding(request)
        if address is not None:
            limit = min(limit, MAX_BYTES_UNPROVEN_FROM_ADDRESS)
        chunks: list[bytes] = []
        size = 0
        if (request.content_length or 0) > limit:
            raise too_large.error(most=f"{limit // 2**20} MiB")
        self._require_turn(address)
        self._enter(address, 1)
        try:
            async with asyncio.timeout(BODY_TIMEOUT):
                while chunk := await request.content.readany():
                    size += len(chunk)
                    self._count(len(chunk), address)
                    if size > limit:
                        raise too_large.error(most=f"{limit // 2**20} MiB")
                    self._require_memory(address)
                    chunks.append(chunk)
            body = b"".join(chunks)
            chunks.clear()
            yield body
        except TimeoutError:
            raise BODY_TOO_SLOW.error() from None
        finally:
            self._count(-size, address)
            self._enter(address, -1)

    async def receive_webhook(self, request: web.Request, address: str) -> bytes:
        """Return the body of a webhook from this address; raises the same errors as `receive`."""
        key = address_key(address)
        async with self.receive(request, WEBHOOK_LIMIT, key, WEBHOOK_TOO_LARGE) as body:
            return body

    def _enter(self, address: str | None, change: int) -> None:
        if address is not None:
            self._bodies[address] += change
            if not self._bodies[address]:
                del self._bodies[address]

    def _require_turn(self, address: str | None) -> None:
        if address is None:
            return
        is_full = self.under_way >= MAX_UNPROVEN
        if is_full or self._bodies[address] >= MAX_UNPROVEN_FROM_ADDRESS:
            raise _under_way()

    def _count(self, size: int, address: str | None) -> None:
        self._all += size
        if address is not None:
            self._unproven[address] += size
            if not self._unproven[address]:
                del self._unproven[address]

    def _require_memory(self, address: str | None) -> None:
        if self._all > MAX_BYTES:
            raise _under_way()
        if address is not None and (
            self._unproven[address] > MAX_BYTES_UNPROVEN_FROM_ADDRESS
            or self._unproven.total() > MAX_BYTES_UNPROVEN
        ):
            raise _under_way()


def _under_way() -> Exception:
    return PUSHES_UNDER_WAY.error({"Retry-After": str(RETRY_AFTER)}, seconds=RETRY_AFTER)

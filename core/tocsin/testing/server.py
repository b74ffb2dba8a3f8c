"""Loopback server for an aiohttp application."""

from __future__ import annotations

from typing import Self

from aiohttp import web


class LoopbackServer:
    """An application on a port that stays the same across restarts."""

    def __init__(self, app: web.Application, port: int = 0) -> None:
        self._runner = web.AppRunner(
            app, access_log=None, shutdown_timeout=0, handler_cancellation=True
        )
        self._port = port

    @property
    def url(self) -> str:
        """The address of the server, without a trailing slash."""
        return f"http://127.0.0.1:{self._port}"

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        await self.listen()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def listen(self) -> None:
        """Accept connections, on the same port as before."""
        site = web.TCPSite(self._runner, "127.0.0.1", self._port, reuse_address=True)
        await site.start()
        self._port = self._runner.addresses[0][1]

    async def hang_up(self) -> None:
        """Close every connection, and accept none until `listen`."""
        for site in list(self._runner.sites):
            await site.stop()
        if self._runner.server is not None:
            await self._runner.server.shutdown(0)

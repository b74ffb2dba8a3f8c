"""`tocsin serve`: run the service."""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress

from tocsin.logs import configure_logs
from tocsin.settings import Settings, load_settings


def serve() -> None:
    """Run the service.

    Stops gracefully on SIGINT or SIGTERM; a second signal stops it immediately.
    """
    settings = load_settings()
    configure_logs(settings.log_format)
    asyncio.run(_serve(settings))


async def _serve(settings: Settings) -> None:
    from tocsin import node

    stop = asyncio.Event()
    serving = asyncio.create_task(node.serve(settings, stop))

    def end() -> None:
        """Stop gracefully; at the second signal, immediately."""
        if stop.is_set():
            serving.cancel()
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, end)
    with suppress(asyncio.CancelledError):
        await serving

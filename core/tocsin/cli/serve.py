"""`tocsin serve`: run the service."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated

import typer

from tocsin.logs import configure_logs, get_logger
from tocsin.settings import Settings, load_settings

GRACEFUL_SECONDS = 25.0
"""Time in which a stopping node can finish its work."""
FORCED_SECONDS = 3.0
"""Time in which the node can then release its leases, before the process exits."""
FORCED_STATUS = 4
"""Exit status of a forced stop."""
_log = get_logger()


def serve(
    is_dev: Annotated[
        bool,
        typer.Option(
            "--dev",
            help="For plugin development: restart when plugins.toml, a template or a plugin's "
            "code changes, and keep the delays between retries short.",
        ),
    ] = False,
) -> None:
    """Run the service.

    After SIGINT or SIGTERM, the service stops gracefully within 30 seconds. A second signal stops
    it immediately. After SIGHUP, the service reloads its configuration. If the service runs in a
    terminal, SIGHUP stops it instead.

    Exit status: 0 if the service stopped gracefully, 2 if the configuration is invalid, 3 if the
    database cannot be used, 4 if the service was forced to stop.
    """
    if is_dev:
        from tocsin.cli.dev_server import DevServer

        sys.exit(DevServer(load_settings()).run())
    serve_node()


def serve_node(*, is_dev: bool = False) -> None:
    """Run a node until it is stopped; with `is_dev`, the delays between retries stay short."""
    settings = load_settings()
    configure_logs(settings.log_format, settings.log_level)
    with asyncio.Runner(loop_factory=_find_loop_factory(settings)) as runner:
        runner.run(_serve(settings, is_dev=is_dev))


def _find_loop_factory(settings: Settings) -> Callable[[], asyncio.AbstractEventLoop]:
    if settings.event_loop == "uvloop":
        import uvloop

        return uvloop.new_event_loop
    return asyncio.new_event_loop


async def _serve(settings: Settings, *, is_dev: bool) -> None:
    begin = time.monotonic()
    from tocsin import node

    imported_in = time.monotonic() - begin
    stop, reload, loop = asyncio.Event(), asyncio.Event(), asyncio.get_running_loop()
    serving = asyncio.create_task(
        node.serve(settings, stop, reload, imported_in=imported_in, is_dev=is_dev)
    )
    watchdog = _Watchdog(loop, serving)
    watchdog.start()

    def end(*_: object) -> None:
        """Stop gracefully, or immediately at the second signal."""
        watchdog.arm()
        loop.call_soon_threadsafe(stop.set)

    def hang_up(*_: object) -> None:
        """Stop if the service runs in a terminal; otherwise, reload the configuration."""
        if sys.stdin is not None and sys.stdin.isatty():
            end()
        else:
            loop.call_soon_threadsafe(reload.set)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    signal.signal(signal.SIGHUP, hang_up)
    try:
        await serving
    except asyncio.CancelledError:
        sys.exit(FORCED_STATUS)


class _Watchdog(threading.Thread):
    """Ends the process in time after a signal, even if the event loop is blocked."""

    def __init__(self, loop: asyncio.AbstractEventLoop, serving: asyncio.Task[None]) -> None:
        super().__init__(name="tocsin-stop-watchdog", daemon=True)
        self._loop = loop
        self._serving = serving
        self._signals, self._signalled = os.pipe()  # a handler of signals must not take locks

    def arm(self) -> None:
        """Start the countdown; the second time, force the stop."""
        os.write(self._signalled, b"\0")

    def run(self) -> None:
        """Wait for the signal, cancel unfinished work, and end the process."""
        os.read(self._signals, 1)
        select.select([self._signals], [], [], GRACEFUL_SECONDS)
        _log.error("shutdown forced; deliveries in progress will be retried")
        with suppress(RuntimeError):  # the loop is closed, and only threads remain
            self._loop.call_soon_threadsafe(self._serving.cancel)
        time.sleep(FORCED_SECONDS)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(FORCED_STATUS)

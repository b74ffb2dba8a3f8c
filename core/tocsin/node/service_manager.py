"""Notifications to systemd: readiness, status and watchdog of a unit with `Type=notify`."""

from __future__ import annotations

import asyncio
import faulthandler
import os
import socket
import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Protocol

import structlog

from tocsin.clock import Clock
from tocsin.loops import run_forever, wait_for_event
from tocsin.store import DatabaseFault
from tocsin.terminal import neutralize

START_EXTENSION = timedelta(seconds=60)
"""How much longer a start may take after each notification: migrations have no fixed length."""
_START_INTERVAL = timedelta(seconds=10)
_STATUS_INTERVAL = timedelta(seconds=5)
_FAILED_RELOAD = "the last reload failed, so the configuration did not change; see the log"
_log = structlog.get_logger()


class WatchedNode(Protocol):
    """State of a node that the service manager is notified of."""

    @property
    def suspension(self) -> str | None:
        """Why the node does not work; None while it does."""

    @property
    def routing_hold(self) -> str | None:
        """Why events wait instead of being routed, with the remedy; None if they are routed."""

    @property
    def stalled(self) -> Sequence[str]:
        """Names of the loops that are stuck or only fail."""

    @property
    def silent(self) -> Sequence[str]:
        """Names of the loops that hang."""

    async def check_database(self) -> DatabaseFault | None:
        """Return the fault that keeps the database from taking writes, None if it takes them."""


class ServiceManager:
    """Client for systemd's notification protocol; does nothing outside a `Type=notify` unit."""

    def __init__(self, address: str = "", watchdog: timedelta | None = None) -> None:
        """Notify a socket: `address` is a path, or the name of an abstract socket after `@`."""
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self._watchdog = watchdog
        self._is_ready = False
        self._is_failing = False
        self._status = ""
        self._has_failed_reload = False
        self._silent: Sequence[str] = ()

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> ServiceManager:
        """Return the client for the socket and the watchdog that the environment names."""
        address = environment.get("NOTIFY_SOCKET", "")
        if address and not address.startswith(("/", "@")):
            _log.warning("NOTIFY_SOCKET ignored: neither a path nor an abstract socket")
            return cls()
        watched = environment.get("WATCHDOG_PID", "")
        period = environment.get("WATCHDOG_USEC", "")
        if not address or watched not in {"", str(os.getpid())} or not period.isdecimal():
            return cls(address)
        faulthandler.enable()  # the watchdog ends a process by SIGABRT; the log gets its stacks
        return cls(address, timedelta(microseconds=int(period)) or None)

    async def follow(self, stop: asyncio.Event) -> None:
        """Extend the start-up time until the node is ready, and report when `stop` is set."""
        if not self._address:
            return
        self._notify("STATUS=Starting")
        while not (stop.is_set() or self._is_ready):
            self._notify(f"EXTEND_TIMEOUT_USEC={START_EXTENSION // timedelta(microseconds=1)}")
            await wait_for_event(stop, _START_INTERVAL.total_seconds())
        await stop.wait()
        self._notify("STOPPING=1", "STATUS=Stopping: finishing deliveries and requests in progress")

    def report_reload(self) -> None:
        """Report that the node is reloading its configuration."""
        if self._address:
            now = time.monotonic_ns() // 1_000
            self._notify("RELOADING=1", f"MONOTONIC_USEC={now}", "STATUS=Reloading")

    def report_reloaded(self, problem: str | None) -> None:
        """Report that the configuration was read, or why it was not used."""
        self._has_failed_reload = problem is not None
        self._status = ""  # the next report renews it
        if self._address:
            self._notify("READY=1", f"STATUS={self._add_reload('Ready')}")

    def _add_reload(self, status: str) -> str:
        return f"{status}; {_FAILED_RELOAD}" if self._has_failed_reload else status

    async def run(self, node: WatchedNode, clock: Clock) -> None:
        """Report that the node is ready; then send status and watchdog signals until cancelled."""
        if not self._address:
            return
        self._is_ready = True
        self._notify("READY=1", "STATUS=Ready")
        interval = min(_STATUS_INTERVAL, (self._watchdog or _STATUS_INTERVAL) / 3)

        async def step() -> None:
            await self._report(node)
            await clock.sleep(interval)

        await run_forever(step, clock, "service manager")

    async def _report(self, node: WatchedNode) -> None:
        fault, silent = await node.check_database(), node.silent
        if (status := self._add_reload(_describe(node, fault))) != self._status:
            self._status = status
            self._notify(f"STATUS={status}")
        if self._watchdog is None:
            return
        # loops wait for a database that is down, and no restart repairs one
        if not silent or fault is not None:
            self._notify("WATCHDOG=1")
        elif silent != self._silent:
            _log.error("loops stalled; the watchdog will restart the service", loops=silent)
        self._silent = silent

    def _notify(self, *lines: str) -> None:
        message = "\n".join(neutralize(" ".join(line.split())) for line in lines)
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.setblocking(False)
                sender.sendto(message.encode(), self._address)
        except OSError as error:
            if not self._is_failing:
                _log.warning("service manager not notified", reason=str(error))
            self._is_failing = True
        else:
            self._is_failing = False


def _describe(node: WatchedNode, fault: DatabaseFault | None) -> str:
    if node.suspension is not None:
        return f"Suspended: {node.suspension}"
    if fault is not None:
        return f"Not ready: database {fault.value}"
    if node.stalled:
        return f"Not ready: loops stalled: {', '.join(node.stalled)}"
    if node.routing_hold is not None:
        return f"Not ready: {node.routing_hold}"
    return "Ready"

"""`tocsin serve` under a service manager: systemd's notifications, and SIGHUP."""

from __future__ import annotations

import asyncio
import os
import pty
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ports import free_port
from tocsin.clock import SystemClock
from tocsin.node.service_manager import ServiceManager
from tocsin.store import DatabaseFault

_BLOCKED = """
import asyncio, time
from tocsin.node import process
def block_soon(_):
    asyncio.get_running_loop().call_later(1, time.sleep, 60)
process.ServiceNode._log_start = block_soon
from tocsin.cli import main
main()
"""


@contextmanager
def serving(folder: Path, *command: str, **options) -> Iterator[subprocess.Popen]:
    folder.joinpath("plugins.toml").touch()
    own = {name: value for name, value in os.environ.items() if not name.startswith("TOCSIN_")}
    command = command or ("-m", "tocsin", "serve")
    variables = own | {"TOCSIN_PORT": "0"} | options.pop("env", {})
    process = subprocess.Popen(
        [sys.executable, *command], cwd=folder, env=variables, stderr=subprocess.PIPE, **options
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@contextmanager
def listening(address: str) -> Iterator[socket.socket]:
    """A socket as the service manager's."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(address)
        manager.settimeout(30)
        yield manager


def read_until(manager: socket.socket, wanted: str) -> list[str]:
    """Return the lines up to the end of the message that contains a line."""
    lines: list[str] = []
    while wanted not in lines:
        lines += manager.recv(4096).decode().split("\n")
    return lines


def drain(manager: socket.socket, timeout: float = 0) -> bytes:
    """Return the messages until there is none for `timeout` seconds."""
    manager.settimeout(timeout)
    messages = []
    try:
        while True:
            messages.append(manager.recv(4096))
    except (BlockingIOError, TimeoutError):
        return b"\n".join(messages)


def read_stderr_until(process: subprocess.Popen, wanted: bytes) -> str:
    for line in process.stderr:
        if wanted in line:
            return line.decode()
    raise AssertionError(f"{wanted!r} was not logged")


def test_systemd_is_notified_from_the_start_to_the_stop(tmp_path):
    port = free_port()
    given = {
        "NOTIFY_SOCKET": str(tmp_path / "notify"),
        "WATCHDOG_USEC": "600000",
        "TOCSIN_PORT": str(port),
    }
    with listening(given["NOTIFY_SOCKET"]) as manager, serving(tmp_path, env=given) as process:
        started = read_until(manager, "READY=1")
        assert started[0] == "STATUS=Starting"
        assert "EXTEND_TIMEOUT_USEC=60000000" in started
        assert "WATCHDOG=1" not in started
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=10) as response:
            assert response.status == 200
        line = read_stderr_until(process, b"started")
        assert "imported_in=" in line
        assert "started_in=" in line
        for _ in range(3):
            read_until(manager, "WATCHDOG=1")
        plugins = tmp_path / "plugins.toml"
        plugins.write_text("[environment")
        process.send_signal(signal.SIGHUP)
        read_until(manager, "RELOADING=1")
        assert "STATUS=Ready; the last reload failed" in str(read_until(manager, "READY=1"))
        assert "plugins.toml" in read_stderr_until(process, b"reload failed")
        plugins.write_text('[environment]\ninternal_domains = ["corp.example"]')
        process.send_signal(signal.SIGHUP)
        read_until(manager, "RELOADING=1")
        assert "STATUS=Ready" in read_until(manager, "READY=1")
        assert "environment" in read_stderr_until(process, b"reloaded")
        process.send_signal(signal.SIGTERM)
        read_until(manager, "STOPPING=1")
        assert process.wait(timeout=20) == 0


@pytest.mark.full
def test_a_blocked_event_loop_is_silent_and_its_stacks_are_logged(tmp_path):
    given = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "600000"}
    with (
        listening(given["NOTIFY_SOCKET"]) as manager,
        serving(tmp_path, "-c", _BLOCKED, "serve", env=given) as process,
    ):
        read_until(manager, "WATCHDOG=1")
        drain(manager, timeout=4)  # never ends while there are life signs
        process.send_signal(signal.SIGABRT)  # as the watchdog does
        assert process.wait(timeout=10) == -signal.SIGABRT
        assert b"in _run_once" in process.stderr.read()


@pytest.mark.full
def test_a_closed_terminal_stops_the_service_gracefully(tmp_path):
    ours, theirs = pty.openpty()
    with serving(tmp_path, stdin=theirs) as process:
        read_stderr_until(process, b"started")
        process.send_signal(signal.SIGHUP)
        assert process.wait(timeout=20) == 0
    os.close(ours)
    os.close(theirs)


class Node:
    """A node of a chosen state."""

    suspension = routing_hold = None

    def __init__(self, stalled=(), silent=(), fault=None):
        self.stalled = stalled or silent
        self.silent = silent
        self._fault = fault

    async def check_database(self):
        return self._fault


async def messages_of(manager: socket.socket, address: str, node: Node) -> list[str]:
    """Return what is sent until the end of the first report."""
    client = ServiceManager.from_environment(
        {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "60000000", "WATCHDOG_PID": str(os.getpid())}
    )
    task = asyncio.create_task(client.run(node, SystemClock()))
    await asyncio.sleep(0.05)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return drain(manager).decode().split("\n")


@pytest.mark.parametrize(
    ("node", "is_alive", "status"),
    [
        (Node(), True, "STATUS=Ready"),
        (
            Node(silent=["sync edge"]),
            False,
            "STATUS=Not ready: loops stalled: sync edge",
        ),
        (
            Node(stalled=["sync edge\nREADY=1"]),  # fails, and a restart does not help
            True,
            "STATUS=Not ready: loops stalled: sync edge READY=1",
        ),
        (
            Node(silent=["router"], fault=DatabaseFault.TIMED_OUT),
            True,
            "STATUS=Not ready: database timed-out",
        ),
    ],
)
async def test_only_a_hanging_loop_over_a_working_database_is_left_to_the_watchdog(
    node, is_alive, status
):
    address = f"@tocsin-{os.getpid()}"
    with listening("\0" + address[1:]) as manager:
        lines = await messages_of(manager, address, node)
    assert lines[0] == "READY=1"
    assert status in lines
    assert ("WATCHDOG=1" in lines) is is_alive


async def test_a_watchdog_of_another_process_is_left_alone():
    address = f"@tocsin-{os.getpid()}"
    with listening("\0" + address[1:]) as manager:
        given = {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "60000000", "WATCHDOG_PID": "1"}
        client = ServiceManager.from_environment(given)
        task = asyncio.create_task(client.run(Node(), SystemClock()))
        await asyncio.sleep(0.05)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert manager.recv(4096) == b"READY=1\nSTATUS=Ready"
        assert b"WATCHDOG=1" not in drain(manager)


async def test_a_socket_that_is_gone_does_not_stop_the_service(tmp_path):
    client = ServiceManager.from_environment({"NOTIFY_SOCKET": str(tmp_path / "gone")})
    task = asyncio.create_task(client.run(Node(), SystemClock()))
    await asyncio.sleep(0.05)
    assert not task.done()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

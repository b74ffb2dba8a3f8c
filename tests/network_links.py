"""Networks of their own for processes, with bridges between them whose links can be moved.

What leaves a link that is cut arrives nowhere, and nobody is told.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NEAR, NETWORK = "10.77.0.1", "10.77.0.0/24"


def run_in_network(child: Path, folder: Path, timeout: float = 240) -> dict[str, Any]:
    """Run a script as root in a new network, and return the JSON of its last line.

    Skips the test where networks cannot be made.
    """
    for tool in ("unshare", "nsenter", "ip"):
        if shutil.which(tool) is None:
            pytest.skip(f"this machine has no {tool}")
    if os.geteuid() != 0:
        pytest.skip("only root can run servers in a network of its own")
    command = ("unshare", "--net")
    bridge = ("ip", "link", "add", "near", "type", "bridge")
    made = subprocess.run([*command, *bridge], capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"networks cannot be made here: {made.stderr.strip()}")
    done = subprocess.run(
        [*command, sys.executable, str(child), str(folder)],
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def run(*command: str) -> None:
    subprocess.run(command, check=True)


def make_bridges() -> None:
    """Make the near bridge, where this process is, and a far one without anybody."""
    run("ip", "link", "set", "lo", "up")
    for bridge in ("near", "far"):
        run("ip", "link", "add", bridge, "type", "bridge")
        run("ip", "link", "set", bridge, "up")
    run("ip", "address", "add", f"{NEAR}/24", "dev", "near")


class Link:
    """A network with one address, and its link to a bridge."""

    def __init__(self, process: int, host: str, port: str) -> None:
        """Connect the network of a process with the near bridge, at a port of this name."""
        self.host = host
        self.prefix = ("nsenter", f"--target={process}", "--net")
        """The command that runs another in the network."""
        self._port = port
        inner = f"{port}-in"
        peer = ("type", "veth", "peer", "name", inner, "netns", str(process))
        run("ip", "link", "add", port, *peer)
        self.plug()
        run("ip", "link", "set", port, "up")
        run(*self.prefix, "ip", "link", "set", "lo", "up")
        run(*self.prefix, "ip", "address", "add", f"{host}/24", "dev", inner)
        run(*self.prefix, "ip", "link", "set", inner, "up")

    def plug(self, bridge: str = "near") -> None:
        """Connect the network with a bridge."""
        run("ip", "link", "set", self._port, "master", bridge)

    def cut(self) -> None:
        """Connect the network with nothing."""
        run("ip", "link", "set", self._port, "nomaster")


@contextmanager
def open_links(*hosts: str) -> Iterator[list[Link]]:
    """Make a network with a link to the near bridge for each address."""
    make_bridges()
    # what holds each network is its process
    holders = [subprocess.Popen(["unshare", "--net", "sleep", "600"]) for _ in hosts]
    try:
        time.sleep(0.3)
        yield [
            Link(holder.pid, host, f"port{number}")
            for number, (holder, host) in enumerate(zip(holders, hosts, strict=True), 1)
        ]
    finally:
        for holder in holders:
            holder.kill()
            holder.wait()

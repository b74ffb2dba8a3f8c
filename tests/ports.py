"""Ports for servers of tests."""

from __future__ import annotations

import random
import socket

_PORTS = range(10_000, 32_768)
"""Below what Linux gives to clients: a connection of another test cannot take a port found here."""


def free_port() -> int:
    """Return a port of loopback that is free, and that no connection gets as its own."""
    while True:
        port = random.choice(_PORTS)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port

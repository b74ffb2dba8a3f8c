"""Network flows of alerts: addresses, ports, protocol and direction in a record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tocsin import NetworkFlow
from tocsin_connectors.siem.records import normalize_address, text_at, value_at

_PORT_DIGITS = 5


class FlowPaths(NamedTuple):
    """Dotted paths of the ends of a connection in a record, for each the most specific first."""

    source: Sequence[str]
    source_port: Sequence[str]
    target: Sequence[str]
    target_port: Sequence[str]
    protocol: Sequence[str] = ()
    direction: Sequence[str] = ()


ECS_FLOW = FlowPaths(
    source=("source.ip", "client.ip"),
    source_port=("source.port", "client.port"),
    target=("destination.ip", "server.ip"),
    target_port=("destination.port", "server.port"),
    protocol=("network.transport",),
    direction=("network.direction",),
)
"""Fields of the Elastic Common Schema: https://www.elastic.co/docs/reference/ecs/ecs-network"""


def find_flow(record: Any, paths: FlowPaths) -> NetworkFlow | None:
    """Return the connection of a record, None if it has no port and not both addresses."""
    source, target = (
        normalize_address(text_at(record, *names) or "") for names in (paths.source, paths.target)
    )
    ports = [_find_port(record, names) for names in (paths.source_port, paths.target_port)]
    if ports == [None, None] and not (source and target):
        return None
    protocol, direction = (
        word.casefold() if (word := text_at(record, *names)) else None
        for names in (paths.protocol, paths.direction)
    )
    return NetworkFlow(
        source=source,
        source_port=ports[0],
        target=target,
        target_port=ports[1],
        protocol=protocol,
        direction=direction,
    )


def _find_port(record: Any, paths: Sequence[str]) -> int | None:
    """Return the first value that is a port (RFC 6335, section 6), None if there is none."""
    for path in paths:
        word = str(value_at(record, path))
        if word.isascii() and word.isdigit() and len(word) <= _PORT_DIGITS and int(word) < 1 << 16:
            return int(word)
    return None

"""The providers and how they do, as they are shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, select

from tocsin.clock import isoformat, isoformat_or_none
from tocsin.hookspecs import Capability, Provider
from tocsin.incidents.syncing.standings import load_statuses
from tocsin.registry import AbsentPlugin, Configuration
from tocsin.store.tables import stream_positions

PROVIDER_STATES = ("healthy", "failing", "waiting", "pushed", "absent", "removed")


@dataclass(frozen=True, slots=True)
class ProviderFacts:
    """What `plugins.toml` says of a provider, and what its plugin can do."""

    name: str
    plugin: str
    capabilities: frozenset[Capability]
    absent: str | None = None
    """Why it was left out; None where it was not."""

    @property
    def is_pushed(self) -> bool:
        """Whether it is sent to, and perhaps not read at all."""
        return Capability.PUSH in self.capabilities


def describe_providers(
    configuration: Configuration, absent: Iterable[AbsentPlugin]
) -> list[ProviderFacts]:
    """Return what is configured, in the order of the file, and what of it is absent."""
    reasons = {left_out.name: left_out.reason for left_out in absent}
    return [
        ProviderFacts(
            item.name,
            item.settings.plugin,
            _capabilities(item.kind),
            reasons.get(f"providers.{item.name}"),
        )
        for item in configuration.providers
    ]


def _capabilities(kind: type[Provider] | None) -> frozenset[Capability]:
    return frozenset() if kind is None else kind.capabilities()


def list_providers(
    connection: Connection, configured: Sequence[ProviderFacts], now: datetime
) -> list[dict[str, Any]]:
    """Return the configured providers, and those that are not any more but were read."""
    standings, streams = load_statuses(connection, now), _load_streams(connection)
    names = {facts.name for facts in configured}
    gone = [(name, standing) for name, standing in standings.items() if name not in names]
    return [
        *(
            _represent_configured(it, standings.get(it.name), streams.get(it.name, ()))
            for it in configured
        ),
        *(_represent_removed(name, standing, streams.get(name, ())) for name, standing in gone),
    ]


_NEVER_READ: Mapping[str, Any] = {
    "outcome": None,
    "reason": None,
    "failures": 0,
    "read_at": None,
    "succeeded_at": None,
    "failing_since": None,
    "next_read_at": None,
    "clock_skew_seconds": None,
    "node": None,
}


def _represent_configured(
    facts: ProviderFacts, standing: Mapping[str, Any] | None, streams: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    known = {**_NEVER_READ, "state": "waiting", **(standing or {}), "plugin": facts.plugin}
    if facts.absent is not None:
        known |= {"state": "absent", "reason": facts.absent, "outcome": None, "next_read_at": None}
    elif facts.is_pushed and standing is None:
        known["state"] = "pushed"
    return _arrange(facts.name, known, sorted(facts.capabilities), streams)


def _represent_removed(
    name: str, standing: Mapping[str, Any], streams: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    return _arrange(name, {**standing, "state": "removed"}, [], streams)


def _arrange(
    name: str,
    known: Mapping[str, Any],
    capabilities: Sequence[str],
    streams: Sequence[dict[str, Any]],
) -> dict[str, Any]:
    return {
        "name": name,
        "plugin": known["plugin"],
        "state": known["state"],
        **{member: known[member] for member in _NEVER_READ},
        "capabilities": list(capabilities),
        "streams": list(streams),
    }


def _load_streams(connection: Connection) -> dict[str, list[dict[str, Any]]]:
    table = stream_positions.c
    found: dict[str, list[dict[str, Any]]] = {}
    rows = select(table.provider, table.stream, table.updated_at, table.covered_until)
    for provider, stream, updated_at, until in connection.execute(rows.order_by(table.stream)):
        shown = {
            "name": stream,
            "read_at": isoformat(updated_at),
            "covered_until": isoformat_or_none(until),
        }
        found.setdefault(provider, []).append(shown)
    return found

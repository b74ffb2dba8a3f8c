"""Sync status of the providers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, RowMapping, func, literal, select, update

from tocsin.clock import isoformat, isoformat_or_none
from tocsin.hookspecs import ApiRetirement, Capability
from tocsin.incidents.coverage import ReadFailure
from tocsin.incidents.drift import load_drift
from tocsin.registry import AbsentPlugin, Configuration
from tocsin.stops import EmergencyStop, StopKind, load_stops
from tocsin.store import Lease, find_degraded_plugins
from tocsin.store.tables import Timestamp, providers, stream_positions

_DATE_PRECISION = 2_000
MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncRound:
    """Result of one round of reading a provider's streams."""

    ended_at: datetime
    next_at: datetime
    failure: ReadFailure | None
    """The first failure; None if every stream was read."""
    failures: int
    """The number of consecutive failed rounds."""
    clock_skew: timedelta | None


def record_round(connection: Connection, lease: Lease, ended: SyncRound) -> None:
    """Record the result of a round; do nothing if the lease was lost."""
    values: dict[str, Any] = {
        "read_at": ended.ended_at,
        "next_read_at": ended.next_at,
        "failures": ended.failures,
        "outcome": ended.failure.outcome if ended.failure else "read",
        "reason": ended.failure.reason if ended.failure else None,
        "clock_skew_ms": None if ended.clock_skew is None else ended.clock_skew // MILLISECOND,
        "failing_since": None,
    }
    if ended.failure is None:
        values["succeeded_at"] = ended.ended_at
    else:
        values["failing_since"] = func.coalesce(
            providers.c.failing_since, literal(ended.ended_at, Timestamp)
        )
    connection.execute(update(providers).where(*lease.conditions).values(values))


def load_statuses(connection: Connection, now: datetime) -> Mapping[str, dict[str, Any]]:
    """Return the JSON of the status of each provider that was ever read, by name."""
    rows = connection.execute(select(providers).order_by(providers.c.name)).mappings()
    return {row["name"]: _represent_status(row, now) for row in rows}


def _represent_status(row: RowMapping, now: datetime) -> dict[str, Any]:
    moments = ("read_at", "succeeded_at", "failing_since", "next_read_at")
    skew = row["clock_skew_ms"]
    return {
        "plugin": row["plugin"],
        "state": _choose_state(row, now),
        "outcome": row["outcome"],
        "reason": row["reason"],
        "failures": row["failures"],
        **{name: isoformat_or_none(row[name]) for name in moments},
        "clock_skew_seconds": None if skew is None else _skew_seconds(skew),
        "node": None if row["node"] is None else str(row["node"]),
    }


def _skew_seconds(skew: int) -> float:
    """Return a clock skew in seconds; 0 below the precision of the header `Date`."""
    return 0.0 if abs(skew) < _DATE_PRECISION else skew / 1000


def _choose_state(row: RowMapping, now: datetime) -> str:
    is_read = row["leased_until"] is not None and now < row["leased_until"]
    if row["read_at"] is None or not is_read:
        return "waiting"
    return "failing" if row["failures"] else "healthy"


PROVIDER_STATES = (
    *("healthy", "degraded", "failing", "waiting", "pushed", "disabled", "absent", "removed"),
)


@dataclass(frozen=True, slots=True)
class ProviderFacts:
    """Configuration of a provider and the capabilities of its plugin."""

    name: str
    plugin: str
    capabilities: frozenset[Capability]
    absent: str | None = None
    """The reason why the plugin is absent; None if it is present."""
    retirements: tuple[ApiRetirement, ...] = ()
    """The retirements of vendor APIs that it uses with its settings."""

    @property
    def is_pushed(self) -> bool:
        """Whether the provider receives pushed incidents."""
        return Capability.PUSH in self.capabilities


def describe_providers(
    configuration: Configuration, absent: Iterable[AbsentPlugin]
) -> list[ProviderFacts]:
    """Return the configured providers in the order of the file, with absent plugins marked."""
    reasons = {left_out.name: left_out.reason for left_out in absent}
    return [
        ProviderFacts(
            item.name,
            item.settings.plugin,
            frozenset() if item.kind is None else item.kind.capabilities(),
            reasons.get(f"providers.{item.name}"),
            () if item.kind is None else item.kind.list_retirements(item.settings),
        )
        for item in configuration.providers
    ]


def list_providers(
    connection: Connection, configured: Sequence[ProviderFacts], now: datetime
) -> list[dict[str, Any]]:
    """Return the configured providers, then removed ones that were once read."""
    statuses, streams = load_statuses(connection, now), _load_streams(connection)
    drift, degraded = load_drift(connection), find_degraded_plugins(connection, now)
    stops = load_stops(connection, StopKind.PROVIDER, now)
    names = {facts.name for facts in configured}
    gone = [(name, status) for name, status in statuses.items() if name not in names]
    return [
        *(
            _represent_configured(
                facts,
                statuses.get(facts.name),
                streams.get(facts.name, ()),
                degraded.get(f"providers.{facts.name}"),
                stops.get(facts.name),
            )
            | _represent_warnings(facts.retirements, drift.get(facts.name, []), now)
            for facts in configured
        ),
        *(
            _arrange(name, {**status, "state": "removed"}, [], streams.get(name, ()), None)
            | _represent_warnings((), [], now)
            for name, status in gone
        ),
    ]


def _represent_warnings(
    retirements: Iterable[ApiRetirement], drift: list[dict[str, Any]], now: datetime
) -> dict[str, list[dict[str, Any]]]:
    """Return the JSON of fields that drifted, and of APIs whose end is near or past."""
    return {
        "drift": drift,
        "retirements": [
            {
                "api": one.api,
                "ends_on": one.ends_on.isoformat(),
                "advice": one.advice,
                "source": one.source,
            }
            for one in retirements
            if one.is_due(now)
        ],
    }


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
    facts: ProviderFacts,
    status: Mapping[str, Any] | None,
    streams: Sequence[dict[str, Any]],
    degraded: str | None,
    stop: EmergencyStop | None,
) -> dict[str, Any]:
    known = {**_NEVER_READ, "state": "waiting", **(status or {}), "plugin": facts.plugin}
    if facts.absent is not None:
        known |= {"state": "absent", "reason": facts.absent, "outcome": None, "next_read_at": None}
    elif facts.is_pushed and status is None:
        known["state"] = "pushed"
    if degraded is not None and known["state"] in {"healthy", "waiting", "pushed"}:
        known |= {"state": "degraded", "reason": degraded}
    if stop is not None and known["state"] != "absent":
        reason = f"disabled {stop.describe()}"
        known |= {"state": "disabled", "reason": reason, "next_read_at": None}
    return _arrange(facts.name, known, sorted(facts.capabilities), streams, stop)


def _arrange(
    name: str,
    known: Mapping[str, Any],
    capabilities: Sequence[str],
    streams: Sequence[dict[str, Any]],
    stop: EmergencyStop | None,
) -> dict[str, Any]:
    return {
        "name": name,
        "plugin": known["plugin"],
        "state": known["state"],
        "stop": None if stop is None else stop.represent(),
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

"""Suppression rules: which incidents' events are not delivered."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from sqlalchemy import Connection, bindparam, select, update

from tocsin.delivery.destinations.channels import OBSERVER_PREFIX
from tocsin.model import ChangeType, Event, EventType
from tocsin.store import is_in
from tocsin.store.tables import events, incident_entities, incidents, suppressions

_SUPPRESSED_TYPES = frozenset({EventType.INCIDENT_ALERT, ChangeType.INCIDENT_CHANGED})


@dataclass(frozen=True, slots=True)
class IncidentFacts:
    """The members of an incident that rules are compared with."""

    provider: str
    title: str
    entities: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class SuppressionRule:
    """An active rule, with at least one condition; all of its conditions must match."""

    name: str
    provider: str | None = None
    title: str | None = None
    """A case-insensitive pattern for the whole title, in which `*` stands for any text."""
    entity: str | None = None
    network: IPv4Network | IPv6Network | None = None
    ends_at: datetime | None = None

    @property
    def needs_entities(self) -> bool:
        """Whether the rule has a condition on entities."""
        return self.entity is not None or self.network is not None

    def matches(self, incident: IncidentFacts) -> bool:
        """Return whether all conditions match."""
        return (
            (self.provider is None or self.provider == incident.provider)
            and (self.title is None or matches_pattern(self.title, incident.title))
            and (self.entity is None or self._has_entity(self.entity, incident.entities))
            and (self.network is None or any(map(self._is_inside, incident.entities)))
        )

    def _has_entity(self, wanted: str, values: Iterable[str]) -> bool:
        return wanted.casefold() in {value.casefold() for value in values}

    def _is_inside(self, value: str) -> bool:
        try:
            return self.network is not None and ip_address(value) in self.network
        except ValueError:  # another kind of entity
            return False


def matches_pattern(pattern: str, text: str) -> bool:
    """Return whether a pattern with `*` matches the whole text, ignoring case.

    The function does not backtrack. It searches once for each literal part, after the previous one.
    """
    first, *others = pattern.casefold().split("*")
    text = text.casefold()
    if not others:
        return text == first
    if not text.startswith(first):
        return False
    *middle, last = others
    position = len(first)
    for part in middle:
        found = text.find(part, position)
        if found < 0:
            return False
        position = found + len(part)
    return len(text) - position >= len(last) and text.endswith(last)


def load_active_rules(connection: Connection, now: datetime) -> list[SuppressionRule]:
    """Return the rules that have not ended, oldest first."""
    return [
        SuppressionRule(
            row["name"],
            row["provider"],
            row["title"],
            row["entity"],
            None if row["cidr"] is None else ip_network(row["cidr"]),
            row["ends_at"],
        )
        for row in connection.execute(_ACTIVE, {"now": now}).mappings()
    ]


@dataclass(frozen=True, slots=True)
class SuppressionMatches:
    """The rules that apply at a time, and which of them suppress the events in a batch."""

    rules: Sequence[SuppressionRule]
    at: datetime
    names: Mapping[str, str]
    """The name of the first rule that matches, by event ID, for events that match a rule."""

    def excludes(self, event: Event, destination: str) -> bool:
        """Return whether a rule suppresses the event; observer plugins receive all events."""
        return event.id in self.names and not destination.startswith(OBSERVER_PREFIX)

    def record(self, connection: Connection, routed: Iterable[Event]) -> None:
        """Record which rule suppressed each of these events."""
        ids = defaultdict(list)
        for event in routed:
            if event.id in self.names:
                ids[self.names[event.id]].append(event.id)
        for name in sorted(ids):  # in the same order on every node
            connection.execute(_MARK, {"ids": ids[name], "rule": name})
            connection.execute(_COUNT, {"rule": name, "more": len(ids[name])})


def match_rules(
    connection: Connection,
    unrouted: Iterable[Event],
    known: Iterable[SuppressionRule],
    now: datetime,
) -> SuppressionMatches:
    """Return which of the known rules suppress these events, unless they have ended.

    An incident that is no longer stored does not match any rule.
    """
    rules = [rule for rule in known if rule.ends_at is None or rule.ends_at > now]
    numbers = {
        event.id: event.data["incident_number"]
        for event in unrouted
        if rules and event.event_type in _SUPPRESSED_TYPES
    }
    if not numbers:
        return SuppressionMatches(rules, now, {})
    wanted = sorted(set(numbers.values()))
    facts = _load_facts(connection, wanted, entities=any(rule.needs_entities for rule in rules))
    matched = {
        number: next((rule.name for rule in rules if rule.matches(incident)), None)
        for number, incident in facts.items()
    }
    names = {id_: name for id_, number in numbers.items() if (name := matched.get(number))}
    return SuppressionMatches(rules, now, names)


def _load_facts(
    connection: Connection, numbers: Sequence[int], *, entities: bool
) -> dict[int, IncidentFacts]:
    values: dict[int, list[str]] = {number: [] for number in numbers}
    if entities:
        for number, value in connection.execute(_ENTITIES, {"numbers": numbers}):
            values[number].append(value)
    found = connection.execute(_INCIDENTS, {"numbers": numbers})
    return {row.number: IncidentFacts(row.provider, row.title, values[row.number]) for row in found}


_IS_ACTIVE = suppressions.c.ends_at > bindparam("now", type_=suppressions.c.ends_at.type)
_ACTIVE = (
    select(suppressions).where(_IS_ACTIVE).order_by(suppressions.c.created_at, suppressions.c.name)
)
SELECT_ACTIVE_NAMES = select(suppressions.c.name).where(_IS_ACTIVE)
"""Names of the rules that have not ended at `now`; the rules themselves are not changed."""
_INCIDENTS = select(incidents.c.number, incidents.c.provider, incidents.c.title).where(
    is_in(incidents.c.number, "numbers")
)
_ENTITIES = select(incident_entities.c.incident_number, incident_entities.c.value).where(
    is_in(incident_entities.c.incident_number, "numbers")
)
_MARK = update(events).where(is_in(events.c.id, "ids")).values(suppressed_by=bindparam("rule"))
_COUNT = (
    update(suppressions)
    .where(suppressions.c.name == bindparam("rule"))
    .values(suppressed_events=suppressions.c.suppressed_events + bindparam("more"))
)

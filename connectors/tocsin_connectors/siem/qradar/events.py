"""From a row of a search in Ariel to the event that it tells of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from tocsin import Entity, EntityKind, Relation, RelationType, SiemEvent
from tocsin_connectors.siem.qradar.aql import ADDRESS_FIELDS, ENTITY_FIELDS
from tocsin_connectors.siem.qradar.fields import parse_time, text_or_number
from tocsin_connectors.siem.records import describe_value, text, union
from tocsin_connectors.siem.relating import relate
from tocsin_connectors.siem.typed import parse_entities

EventProperties = Mapping[EntityKind, Sequence[str]]
_EVENT_FIELDS = (
    *("event_name", "category_name", "log_source", "protocol", "sourceip", "sourcev6"),
    *("sourceport", "destinationip", "destinationv6", "destinationport", "username"),
    *("identityip", "identityhostname", "eventcount", "magnitude", "devicetime", "payload"),
)
_NO_ADDRESSES = frozenset({"0.0.0.0", "::"})  # noqa: S104 - what stands where there is none
_SOURCES, _TARGETS = ("sourceip", "sourcev6"), ("destinationip", "destinationv6")


def build_event(row: dict[str, Any], properties: EventProperties) -> SiemEvent:
    """Return what a row tells; ValueError where it does not say when that was.

    `properties` are the custom properties that were asked for, by the kind of what they name.
    """
    at = parse_time(row, "starttime")
    if at is None:
        raise ValueError(f"starttime is {describe_value(row.get('starttime'))}")
    names = [*_EVENT_FIELDS, *(name for its in properties.values() for name in its)]
    shown = {name: value for name in names if (value := text_or_number(row, name))}
    return SiemEvent(
        external_id=None,
        occurred_at=at,
        summary=" ".join(_summarize(row).split())[:1_000],
        entities=union([_find_entities(row, properties)]),
        relations=union([_find_relations(row, at)]),
        fields={name: value[:1_000] for name, value in shown.items()},
    )


def _find_entities(row: dict[str, Any], properties: EventProperties) -> Iterator[Entity]:
    for names in ADDRESS_FIELDS.values():
        yield from _find_hosts(row, names)
    named = (*ENTITY_FIELDS.items(), *properties.items())
    for kind, its in named:
        for name in its:
            yield from parse_entities(kind, text(row, name) or "")


def _find_hosts(row: dict[str, Any], names: Sequence[str]) -> list[Entity]:
    """Return the addresses in some fields; where there is none, all of it is zero."""
    found = (it for name in names for it in parse_entities(EntityKind.IP, text(row, name) or ""))
    return [it for it in found if it.value not in _NO_ADDRESSES]


def _find_relations(row: dict[str, Any], at: datetime) -> Iterator[Relation]:
    sources, targets = _find_hosts(row, _SOURCES), _find_hosts(row, _TARGETS)
    yield from relate(sources, RelationType.CONNECTED_TO, targets, at)


def _summarize(row: dict[str, Any]) -> str:
    """Say what happened: `Firewall Permit of ann from 203.0.113.7 to 198.51.100.9, told by fw`."""
    what = text(row, "event_name") or text(row, "category_name") or "an event"
    source, target = (
        next((it.value for it in _find_hosts(row, names)), None) for names in (_SOURCES, _TARGETS)
    )
    parts = {
        " of ": text(row, "username"),
        " from ": source,
        " to ": target,
        ", told by ": text(row, "log_source"),
    }
    return what + "".join(f"{word}{said}" for word, said in parts.items() if said)

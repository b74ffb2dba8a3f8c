"""From a row of a search in Ariel to the event that it tells of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from tocsin import Entity, EntityKind, Relation, RelationType, SiemEvent
from tocsin_connectors.siem.qradar.aql import ADDRESSES, NAMES
from tocsin_connectors.siem.qradar.fields import moment_of, told
from tocsin_connectors.siem.records import described, text, union
from tocsin_connectors.siem.relating import related
from tocsin_connectors.siem.typed import typed

Properties = Mapping[EntityKind, Sequence[str]]
_SHOWN = (
    *("event_name", "category_name", "log_source", "protocol", "sourceip", "sourcev6"),
    *("sourceport", "destinationip", "destinationv6", "destinationport", "username"),
    *("identityip", "identityhostname", "eventcount", "magnitude", "devicetime", "payload"),
)
_NO_ADDRESSES = frozenset({"0.0.0.0", "::"})  # noqa: S104 - what stands where there is none
_SOURCES, _TARGETS = ("sourceip", "sourcev6"), ("destinationip", "destinationv6")


def event_of(row: dict[str, Any], properties: Properties) -> SiemEvent:
    """Return what a row tells; ValueError where it does not say when that was.

    `properties` are the custom properties that were asked for, by the kind of what they name.
    """
    at = moment_of(row, "starttime")
    if at is None:
        raise ValueError(f"starttime is {described(row.get('starttime'))}")
    names = [*_SHOWN, *(name for its in properties.values() for name in its)]
    shown = {name: value for name in names if (value := told(row, name))}
    return SiemEvent(
        external_id=None,
        occurred_at=at,
        summary=" ".join(_summary(row).split())[:1_000],
        entities=union([_entities(row, properties)]),
        relations=union([_relations(row, at)]),
        fields={name: value[:1_000] for name, value in shown.items()},
    )


def _entities(row: dict[str, Any], properties: Properties) -> Iterator[Entity]:
    for names in ADDRESSES.values():
        yield from _hosts(row, names)
    named = (*NAMES.items(), *properties.items())
    for kind, its in named:
        for name in its:
            yield from typed(kind, text(row, name) or "")


def _hosts(row: dict[str, Any], names: Sequence[str]) -> list[Entity]:
    """Return the addresses in some fields; where there is none, all of it is zero."""
    found = (it for name in names for it in typed(EntityKind.IP, text(row, name) or ""))
    return [it for it in found if it.value not in _NO_ADDRESSES]


def _relations(row: dict[str, Any], at: datetime) -> Iterator[Relation]:
    sources, targets = _hosts(row, _SOURCES), _hosts(row, _TARGETS)
    yield from related(sources, RelationType.CONNECTED_TO, targets, at)


def _summary(row: dict[str, Any]) -> str:
    """Say what happened: `Firewall Permit of ann from 203.0.113.7 to 198.51.100.9, told by fw`."""
    what = text(row, "event_name") or text(row, "category_name") or "an event"
    source, target = (
        next((it.value for it in _hosts(row, names)), None) for names in (_SOURCES, _TARGETS)
    )
    parts = {
        " of ": text(row, "username"),
        " from ": source,
        " to ": target,
        ", told by ": text(row, "log_source"),
    }
    return what + "".join(f"{word}{said}" for word, said in parts.items() if said)

"""Event search with UDM queries.

https://cloud.google.com/chronicle/docs/investigation/udm-search
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Iterator
from contextlib import suppress
from datetime import datetime
from typing import Any

from tocsin import Entity, EntityKind, Relation, RelationType, SiemEvent, TryLater, Window
from tocsin_connectors.siem.records import (
    child,
    contains_entity,
    normalize_address,
    parse_utc,
    quote_phrase,
    relate,
    require_text,
    text,
    texts_at,
    union,
)
from tocsin_connectors.siem.secops.client import SecOpsClient
from tocsin_connectors.siem.secops.mapping import ENTITY_FIELDS, find_entities

_CAPITAL = re.compile(r"(?<=[a-z0-9])([A-Z])")
_SHOWN_FIELDS = (
    *("metadata.eventType", "metadata.productName", "metadata.logType", "metadata.description"),
    *("principal.hostname", "principal.ip", "principal.user.userid", "target.hostname"),
    *("target.ip", "target.url", "target.process.commandLine", "principal.process.commandLine"),
    *("target.file.fullPath", "network.dns.questions.name", "network.applicationProtocol"),
    *("securityResult.action", "securityResult.summary"),
)
"""Fields that an analyst would look at."""


async def search_events(
    client: SecOpsClient, entity: Entity, window: Window, limit: int
) -> AsyncGenerator[SiemEvent, None]:
    """Yield the latest events that name an entity.

    Raises `TryLater` at the end if more events match than a search returns.
    """
    if not _is_searchable(entity):
        return
    rows, more = await client.search(build_query(entity), window)
    found = []
    for row in rows:
        with suppress(ValueError):  # skip invalid events
            event = build_event(row)
            if event.occurred_at in window and contains_entity(entity, event.entities):
                found.append(event)
    found.sort(key=lambda event: event.occurred_at, reverse=True)
    for event in found[:limit]:
        yield event
    if more:
        raise TryLater(f"only {len(rows):,} events were searched; more match")


def build_query(entity: Entity) -> str:
    """Return the query for events that name an entity, ignoring case."""
    case = "" if entity.kind is EntityKind.IP else " nocase"
    wanted = quote_phrase(entity.value)
    return " OR ".join(
        f"{spell_field(name)} = {wanted}{case}" for name in ENTITY_FIELDS[entity.kind]
    )


def spell_field(path: str) -> str:
    """Return a field in the spelling of queries: `principal.user.email_addresses`."""
    return _CAPITAL.sub(lambda match: f"_{match[1].lower()}", path)


def _is_searchable(entity: Entity) -> bool:
    """Return whether an event can name the entity: addresses must be valid, texts printable."""
    if entity.kind is EntityKind.IP:
        return normalize_address(entity.value) is not None
    return bool(entity.value) and entity.value.isprintable()


def build_event(row: dict[str, Any]) -> SiemEvent:
    """Return an event. Raises ValueError if it has no time."""
    event = child(row, "udm")
    metadata = child(event, "metadata")
    value = require_text(metadata, "eventTimestamp")
    at = parse_utc(value)
    shown = {name: ", ".join(texts_at(event, name))[:1_000] for name in _SHOWN_FIELDS}
    return SiemEvent(
        external_id=text(metadata, "id") or text(row, "name"),
        occurred_at=at,
        summary=" ".join(_summarize(event, metadata).split())[:1_000],
        entities=union([find_entities(event)]),
        relations=union([_find_relations(event, metadata, at)]),
        fields={name: value for name, value in shown.items() if value},
    )


def _summarize(event: dict[str, Any], metadata: dict[str, Any]) -> str:
    """Summarize an event: `NETWORK_DNS of ExtraHop: laptop-7, 10.1.2.3 to example.com`."""
    what = text(metadata, "eventType") or "an event"
    product = text(metadata, "productName")
    ends = (
        ", ".join(dict.fromkeys(entity.value for entity in find_entities(event, within)))
        for within in ("principal.", "target.")
    )
    endpoints = " to ".join(filter(None, ends))
    description = text(metadata, "description")
    return ": ".join(
        filter(None, [f"{what} of {product}" if product else what, endpoints, description])
    )


def _find_relations(
    event: dict[str, Any], metadata: dict[str, Any], at: datetime
) -> Iterator[Relation]:
    """Yield network connections."""
    if (text(metadata, "eventType") or "").startswith("NETWORK_"):
        sources = [
            entity for entity in find_entities(event, "principal.") if entity.kind in _HOST_KINDS
        ]
        targets = [
            entity for entity in find_entities(event, "target.") if entity.kind in _HOST_KINDS
        ]
        yield from relate(sources, RelationType.CONNECTED_TO, targets, at)


_HOST_KINDS = frozenset({EntityKind.IP, EntityKind.HOST})

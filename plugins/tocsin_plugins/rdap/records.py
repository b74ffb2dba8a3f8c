"""RDAP response parsing (RFC 9083)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from tocsin import Disposition, Enrichment, Entity, EntityKind, Relation, RelationType
from tocsin_plugins.lookups import object_list, text_field, text_list

_LABEL = re.compile(r"[\w-]{1,63}")
_LONGEST = 253
# Second-level labels under country codes below which names are registered
_SECOND_LEVEL = frozenset({"ac", "co", "com", "edu", "gob", "gov", "net", "or", "org"})


def registered_name(name: str) -> str:
    """Return the registered part of a domain, in Punycode; empty if it is not a domain.

    It has two labels, or three under suffixes such as co.uk. Only this part is looked up.
    """
    labels = name.strip(".").lower().split(".")
    has_two = len(labels) > 2 and len(labels[-1]) == 2 and labels[-2] in _SECOND_LEVEL  # noqa: PLR2004 - ISO 3166
    registered = labels[-3:] if has_two else labels[-2:]
    if len(registered) == 1 or not all(map(_LABEL.fullmatch, registered)):
        return ""
    try:
        ascii_name = ".".join(registered).encode("idna").decode()
    except UnicodeError:
        return ""
    return ascii_name if len(ascii_name) <= _LONGEST else ""


def summarize_domain(
    entity: Entity, name: str, found: Mapping[str, Any], new_since: datetime
) -> Enrichment:
    """Return the enrichment of a domain's record; registered after `new_since`, it is new."""
    events = _events(found)
    registered = _moment(events.get("registration"))
    is_new = registered is not None and registered > new_since
    registrar = _registrant_name(found, "registrar")
    parts = [f"{name} was registered"]
    parts += [f"on {registered.date()}"] if registered else []
    parts += [f"through {registrar}"] if registrar else []
    return Enrichment(
        entity=entity,
        summary=" ".join(parts),
        disposition=Disposition.SUSPICIOUS if is_new else Disposition.UNKNOWN,
        tags=("newly-registered",) if is_new else (),
        relations=_object_with_class(entity, name),
        facts={
            "registered_name": name,
            "registrar": registrar,
            "registered_at": events.get("registration"),
            "expires_at": events.get("expiration"),
            "changed_at": events.get("last changed"),
            "status": text_list(found, "status"),
            "nameservers": _nameservers(found),
        },
    )


def summarize_network(entity: Entity, found: Mapping[str, Any]) -> Enrichment:
    """Return the enrichment from a network's record."""
    name, country = text_field(found, "name"), text_field(found, "country")
    start, end = text_field(found, "startAddress"), text_field(found, "endAddress")
    holder = _registrant_name(found, "registrant")
    described = ", ".join(filter(None, (name, holder, country)))
    return Enrichment(
        entity=entity,
        summary=f"In the network from {start} to {end}" + (f": {described}" if described else ""),
        facts={
            "handle": text_field(found, "handle"),
            "name": name,
            "holder": holder,
            "country": country,
            "start": start,
            "end": end,
            "registered_at": _events(found).get("registration"),
            "abuse_contact": _abuse_contact(found, "abuse"),
        },
    )


def _object_with_class(entity: Entity, name: str) -> tuple[Relation, ...]:
    parent = Entity(EntityKind.DOMAIN, name)
    if parent == entity:
        return ()
    return (Relation(source=entity, type=RelationType.PART_OF, target=parent),)


def _events(found: Mapping[str, Any]) -> dict[str, str]:
    """Return the times of events by action (section 4.5)."""
    return {
        action: date
        for event in object_list(found, "events")
        if (action := text_field(event, "eventAction")) and (date := text_field(event, "eventDate"))
    }


def _moment(date: str | None) -> datetime | None:
    try:
        moment = datetime.fromisoformat(date or "")
        return moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _nameservers(found: Mapping[str, Any]) -> list[str]:
    names = (text_field(server, "ldhName") for server in object_list(found, "nameservers"))
    return sorted({name.lower().rstrip(".") for name in names if name})[:20]


def _registrant_name(found: Mapping[str, Any], role: str) -> str | None:
    return _vcard_field(found, role).get("fn") or _vcard_field(found, role).get("org")


def _abuse_contact(found: Mapping[str, Any], role: str) -> str | None:
    return _vcard_field(found, role).get("email")


def _vcard_field(found: Mapping[str, Any], role: str) -> dict[str, str]:
    """Return the text properties of the first entity with a role, including nested entities.

    They come from a jCard (RFC 7095): lists of name, parameters, type and value.
    """
    entities = object_list(found, "entities")
    for entity in [
        *entities,
        *(inner for outer in entities for inner in object_list(outer, "entities")),
    ]:
        match entity:
            case {"roles": list(roles), "vcardArray": [_, list(properties), *_]} if role in roles:
                return {
                    item[0]: item[3].strip()[:200]
                    for item in properties
                    if isinstance(item, list)
                    and len(item) > 3  # noqa: PLR2004 - RFC 7095 section 3.3
                    and isinstance(item[0], str)
                    and isinstance(item[3], str)
                }
    return {}

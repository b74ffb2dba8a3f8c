"""MISP attribute search enricher: https://www.misp-project.org/openapi/#tag/Attributes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from pydantic import Field, SecretStr

from tocsin import (
    Api,
    ApiSettings,
    Broken,
    Disposition,
    Enricher,
    Enrichment,
    Entity,
    EntityKind,
    Health,
    ServerUrl,
    Tools,
)
from tocsin_plugins.lookups import look_up, object_field, object_list, text_field

_MOST = 1_000
_SHOWN = 20
_SPECIFIC = 8
"""The minimum number of characters beside % for a specific search."""
_TECHNIQUE = re.compile(r'misp-galaxy:mitre-attack-pattern="[^"]*\b(T\d{4}(?:\.\d{3})?)"')
_LEVELS = {"1": "high", "2": "medium", "3": "low"}

_Attribute = Mapping[str, Any]


class MispSettings(Enricher.Settings, ApiSettings):
    """Settings of a MISP enricher."""

    url: ServerUrl = Field(
        description="URL of your MISP instance, such as https://misp.example.com."
    )
    api_key: SecretStr = Field(description="Authentication key of a user with read access.")
    only_published: bool = Field(
        default=True, description="Whether to use only attributes from published events."
    )


class Misp(Enricher[MispSettings]):
    """Looks up MISP attributes that contain an entity's value.

    The entity is malicious if an attribute is marked for detection (`to_ids`), and unknown if all
    are only context. There is no score. Attributes on MISP's warning lists do not count.
    """

    name = "misp"
    kinds: ClassVar[frozenset[EntityKind]] = frozenset(
        {
            EntityKind.IP,
            EntityKind.DOMAIN,
            EntityKind.HOST,
            EntityKind.URL,
            EntityKind.EMAIL,
            EntityKind.FILE_HASH,
            EntityKind.CVE,
        }
    )
    online = True
    batch = 50

    def __init__(self, settings: Any, tools: Tools) -> None:
        """Store the arguments; perform no I/O."""
        super().__init__(settings, tools)
        self._api = Api(tools, settings)
        self._headers = {"Authorization": settings.api_key.get_secret_value()}

    async def check(self) -> Health:
        """Return that the key is accepted, with the version of MISP."""
        answer = await look_up(self._api, "/servers/getVersion", self._headers) or {}
        return Health(detail=f"{self.settings.url} is MISP {text_field(answer, 'version')}")

    async def enrich(self, entities: Sequence[Entity]) -> Sequence[Enrichment]:
        """Return enrichments of the entities with attributes."""
        asked = [entity for entity in entities if _is_searchable(entity.value)]
        found = await self._search([entity.value for entity in asked]) if asked else []
        holding = [
            (entity, [attribute for attribute in found if _matches_entity(attribute, entity)])
            for entity in asked
        ]
        return [
            self._enrich_entity(entity, attributes) for entity, attributes in holding if attributes
        ]

    async def _search(self, values: Sequence[str]) -> list[dict[str, Any]]:
        sought = {
            "returnFormat": "json",
            "value": values,
            "limit": _MOST,
            "enforceWarninglist": True,
            "includeEventTags": True,
            "includeContext": True,
            **({"published": True} if self.settings.only_published else {}),
        }
        path = "/attributes/restSearch"
        answer = await self._api.request("POST", path, json=sought, headers=self._headers)
        response = answer.json.get("response") if isinstance(answer.json, dict) else None
        if not isinstance(response, dict):
            raise Broken(f"POST {path}: the response has no attributes")
        found = object_list(response, "Attribute")
        if len(found) < _MOST or len(values) == 1:
            return found
        middle = len(values) // 2  # a value with very many attributes must not hide others
        return [*await self._search(values[:middle]), *await self._search(values[middle:])]

    def _enrich_entity(self, entity: Entity, attributes: Sequence[_Attribute]) -> Enrichment:
        ordered = sorted(attributes, key=_sort_newest)
        events = {
            event["id"]: event for attribute in ordered if (event := _event_info(attribute))["id"]
        }
        detects = any(attribute.get("to_ids") is True for attribute in ordered)
        tags = list(dict.fromkeys(tag for attribute in ordered for tag in _tag_names(attribute)))
        first = next(iter(events.values()), {"info": None, "id": None})
        count = len(events)
        extent = "Found in one event" if count == 1 else f"Found in {count} events"
        marked = "marked for detection" if detects else "for context only"
        named = f" (latest event: {first['info']})" if first["info"] else ""
        return Enrichment(
            entity=entity,
            summary=f"{extent}, {marked}{named}",
            disposition=Disposition.MALICIOUS if detects else Disposition.UNKNOWN,
            tags=tuple(tag for tag in tags if not _TECHNIQUE.fullmatch(tag)),
            techniques=tuple(found[1] for tag in tags if (found := _TECHNIQUE.fullmatch(tag))),
            facts={
                "events": list(events.values())[:_SHOWN],
                "categories": sorted(
                    {text_field(attribute, "category") or "" for attribute in ordered}
                ),
                "types": sorted({text_field(attribute, "type") or "" for attribute in ordered}),
                "comments": [
                    comment
                    for attribute in ordered
                    if (comment := text_field(attribute, "comment"))
                ][:_SHOWN],
            },
            link=self._link(first["id"]),
        )

    def _link(self, event: str | None) -> str | None:
        return f"{self.settings.url}/events/view/{event}" if event and event.isdecimal() else None


def _is_searchable(value: str) -> bool:
    """Return whether a value can be searched; a leading ! negates, and % is a wildcard."""
    says_enough = "%" not in value or len(value.replace("%", "")) >= _SPECIFIC
    return bool(value) and not value.startswith("!") and says_enough


def _matches_entity(attribute: _Attribute, entity: Entity) -> bool:
    """Return whether a part of an attribute's value is the entity's, as in `domain|ip`."""
    value = attribute.get("value")
    parts = [value, *value.split("|")] if isinstance(value, str) else []
    return any(Entity(entity.kind, part) == entity for part in parts)


def _sort_newest(attribute: _Attribute) -> tuple[int, str]:
    seconds = str(attribute.get("timestamp"))
    is_number = seconds.isascii() and seconds.isdecimal() and len(seconds) < 20  # noqa: PLR2004 - 64 bits
    return -int(seconds) if is_number else 0, str(attribute.get("uuid"))


def _event_info(attribute: _Attribute) -> dict[str, str | None]:
    event = object_field(attribute, "Event")
    return {
        "id": text_field(attribute, "event_id") or text_field(event, "id"),
        "info": text_field(event, "info"),
        "threat_level": _LEVELS.get(text_field(event, "threat_level_id") or ""),
        "date": text_field(event, "date"),
    }


def _tag_names(attribute: _Attribute) -> list[str]:
    return [name for tag in object_list(attribute, "Tag") if (name := text_field(tag, "name"))]

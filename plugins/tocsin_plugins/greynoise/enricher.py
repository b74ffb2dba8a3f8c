"""GreyNoise Community API enricher: https://docs.greynoise.io/reference/getcommunityip."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address
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
from tocsin_plugins.lookups import look_up, text_field

_DISPOSITIONS = {
    "malicious": Disposition.MALICIOUS,
    "suspicious": Disposition.SUSPICIOUS,
    "benign": Disposition.BENIGN,
}


class GreyNoiseSettings(Enricher.Settings, ApiSettings):
    """Settings of a GreyNoise enricher."""

    url: ServerUrl = Field(
        default="https://api.greynoise.io", description="URL of the API, without /v3."
    )
    api_key: SecretStr | None = Field(
        default=None, description="API key of your account. Without a key, the quota is smaller."
    )


class GreyNoise(Enricher[GreyNoiseSettings]):
    """Identifies internet scanners and common services among IPv4 addresses.

    The disposition is GreyNoise's classification; an address of a common business service (RIOT) is
    benign. There is no score, and no data about IPv6 addresses.
    """

    name = "greynoise"
    kinds: ClassVar[frozenset[EntityKind]] = frozenset({EntityKind.IP})
    online = True

    def __init__(self, settings: Any, tools: Tools) -> None:
        """Store the arguments; perform no I/O."""
        super().__init__(settings, tools)
        self._api = Api(tools, settings)

    @property
    def _headers(self) -> Mapping[str, str]:
        key = self.settings.api_key
        return {"key": key.get_secret_value()} if key else {}

    async def check(self) -> Health:
        """Return that the API is available and accepts the key."""
        answer = await look_up(self._api, "/ping", self._headers) or {}
        return Health(detail=f"{self.settings.url} responds: {text_field(answer, 'message')}")

    async def enrich(self, entities: Sequence[Entity]) -> Sequence[Enrichment]:
        """Return the known scanners and services."""
        answers = [
            (entity, await self._answer(entity.value))
            for entity in entities
            if _is_ipv4(entity.value)
        ]
        return [_build_enrichment(entity, answer) for entity, answer in answers if answer]

    async def _answer(self, address: str) -> dict[str, Any] | None:
        answer = await look_up(self._api, f"/v3/community/{address}", self._headers)
        if answer is not None and not isinstance(answer.get("noise"), bool):
            raise Broken("GET /v3/community: the response has no classification")
        return answer


def _is_ipv4(value: str) -> bool:
    try:
        IPv4Address(value)
    except ValueError:
        return False
    return True


def _build_enrichment(entity: Entity, answer: Mapping[str, Any]) -> Enrichment:
    noise, riot = answer.get("noise") is True, answer.get("riot") is True
    classification = (text_field(answer, "classification") or "unknown").lower()
    found = _DISPOSITIONS.get(classification, Disposition.UNKNOWN)
    name = text_field(answer, "name")
    return Enrichment(
        entity=entity,
        summary=_summarize(noise, riot, classification, name),
        disposition=Disposition.BENIGN if riot and not noise else found,
        tags=(("internet-scanner",) if noise else ()) + (("common-service",) if riot else ()),
        facts={
            "noise": noise,
            "riot": riot,
            "classification": classification,
            "name": name,
            "last_seen": text_field(answer, "last_seen"),
        },
        link=f"https://viz.greynoise.io/ip/{entity.value}",
    )


def _summarize(noise: bool, riot: bool, classification: str, name: str | None) -> str:
    parts = []
    if noise:
        parts.append(f"scans the internet (classification: {classification})")
    if riot:
        parts.append("belongs to a common business service")
    known_as = f" ({name})" if name and name.lower() != "unknown" else ""
    return f"It {' and '.join(parts) or 'was seen'}{known_as}"

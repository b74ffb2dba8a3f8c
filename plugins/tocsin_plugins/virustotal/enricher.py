"""VirusTotal enricher, API version 3: https://docs.virustotal.com/reference/overview.

The enricher requests only existing reports, and never submits anything for analysis.
"""

from __future__ import annotations

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
from tocsin_plugins.lookups import look_up, object_field
from tocsin_plugins.virustotal.reports import (
    ScanVerdicts,
    collect_facts,
    collect_labels,
    report_link,
    report_path,
)

_CHECKED = "/ip_addresses/8.8.8.8"


class VirusTotalSettings(Enricher.Settings, ApiSettings):
    """Settings of a VirusTotal enricher."""

    url: ServerUrl = Field(
        default="https://www.virustotal.com/api/v3", description="URL of the API."
    )
    api_key: SecretStr = Field(description="API key of your account.")
    requests_per_minute: int = Field(
        default=4,
        ge=1,
        le=100_000,
        description="Maximum number of entities that Tocsin looks up per minute across all nodes. "
        "The public API allows 4.",
    )
    malicious_from: int = Field(
        default=3,
        ge=1,
        description="How many scanners must return `malicious` for the enricher to rate an entity "
        "as malicious.",
    )


class VirusTotal(Enricher[VirusTotalSettings]):
    """Looks up what VirusTotal's scanners say about an entity.

    The score is the percentage of scanners that flag the entity as malicious or suspicious. The
    entity is malicious if at least `malicious_from` scanners return `malicious`, suspicious if any
    scanner flags it, and never benign, because the absence of detections proves little.
    """

    name = "virustotal"
    kinds: ClassVar[frozenset[EntityKind]] = frozenset(
        {EntityKind.IP, EntityKind.DOMAIN, EntityKind.URL, EntityKind.FILE_HASH}
    )
    online = True

    def __init__(self, settings: Any, tools: Tools) -> None:
        """Store the arguments; perform no I/O."""
        super().__init__(settings, tools)
        self._api = Api(tools, settings)

    async def check(self) -> Health:
        """Return that the key is accepted, which costs one request."""
        await self._report(_CHECKED)
        return Health(detail=f"{self.settings.url} accepts the key")

    async def enrich(self, entities: Sequence[Entity]) -> Sequence[Enrichment]:
        """Return the existing reports."""
        enrichments = []
        for entity in entities:
            path = report_path(entity)
            report = await self._report(path) if path else None
            if report is not None:
                enrichments.append(self._enrich_entity(entity, report))
        return enrichments

    async def _report(self, path: str) -> dict[str, Any] | None:
        key = self.settings.api_key.get_secret_value()
        answer = await look_up(self._api, path, {"x-apikey": key})
        if answer is None:
            return None
        report = object_field(object_field(answer, "data"), "attributes")
        if not isinstance(report.get("last_analysis_stats"), dict):
            raise Broken(f"GET {path}: the response has no scanner verdicts")
        return report

    def _enrich_entity(self, entity: Entity, report: Mapping[str, Any]) -> Enrichment:
        verdicts = ScanVerdicts.of(object_field(report, "last_analysis_stats"))
        label, *others = collect_labels(report) or [""]
        named = f" (label: {label})" if label else ""
        return Enrichment(
            entity=entity,
            summary=f"{verdicts.bad} of {verdicts.total} scanners flag it{named}",
            disposition=self._disposition(verdicts),
            score=verdicts.share,
            tags=tuple(filter(None, (label, *others))),
            facts=collect_facts(report, verdicts),
            link=report_link(entity),
        )

    def _disposition(self, verdicts: ScanVerdicts) -> Disposition:
        if verdicts.malicious >= self.settings.malicious_from:
            return Disposition.MALICIOUS
        return Disposition.SUSPICIOUS if verdicts.bad else Disposition.UNKNOWN

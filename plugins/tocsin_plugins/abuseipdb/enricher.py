"""AbuseIPDB enricher, API version 2: https://docs.abuseipdb.com/#check-endpoint."""

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
from tocsin_plugins.lookups import (
    is_address,
    look_up,
    number_field,
    object_field,
    text_field,
    text_list,
)

_CHECKED = "8.8.8.8"
_WORST = 100


class AbuseIpDbSettings(Enricher.Settings, ApiSettings):
    """Settings of an AbuseIPDB enricher."""

    url: ServerUrl = Field(
        default="https://api.abuseipdb.com/api/v2", description="URL of the API."
    )
    api_key: SecretStr = Field(description="API key (version 2) from your account.")
    max_age_days: int = Field(
        default=90,
        ge=1,
        le=365,
        description="Maximum age of the reports that AbuseIPDB counts, in days.",
    )
    malicious_from: int = Field(
        default=75,
        ge=1,
        le=_WORST,
        description="Lowest abuse confidence score at which an address is rated as malicious.",
    )
    suspicious_from: int = Field(
        default=25,
        ge=1,
        le=_WORST,
        description="Lowest abuse confidence score at which an address is rated as suspicious.",
    )


class AbuseIpDb(Enricher[AbuseIpDbSettings]):
    """Looks up abuse reports about IP addresses.

    The score is AbuseIPDB's abuse confidence. Settings define the thresholds for malicious and
    suspicious; an address on AbuseIPDB's whitelist is benign.
    """

    name = "abuseipdb"
    kinds: ClassVar[frozenset[EntityKind]] = frozenset({EntityKind.IP})
    online = True

    def __init__(self, settings: Any, tools: Tools) -> None:
        """Store the arguments; perform no I/O."""
        super().__init__(settings, tools)
        self._api = Api(tools, settings)

    async def check(self) -> Health:
        """Return that the key is accepted, which costs one request of the daily quota."""
        await self._report(_CHECKED)
        return Health(detail=f"{self.settings.url} accepts the key")

    async def enrich(self, entities: Sequence[Entity]) -> Sequence[Enrichment]:
        """Return the reports of each address, even if there are none."""
        addresses = [entity for entity in entities if is_address(entity.value)]
        reports = [(entity, await self._report(entity.value)) for entity in addresses]
        return [self._enrich_entity(entity, report) for entity, report in reports if report]

    async def _report(self, address: str) -> dict[str, Any] | None:
        answer = await look_up(
            self._api,
            "/check",
            {"Key": self.settings.api_key.get_secret_value()},
            ipAddress=address,
            maxAgeInDays=self.settings.max_age_days,
        )
        if answer is None:
            return None
        report = object_field(answer, "data")
        if number_field(report, "abuseConfidenceScore") is None:
            raise Broken("GET /check: the response has no abuse confidence score")
        return report

    def _enrich_entity(self, entity: Entity, report: Mapping[str, Any]) -> Enrichment:
        score = min(max(number_field(report, "abuseConfidenceScore") or 0, 0), _WORST)
        marks = {"tor": "isTor", "whitelisted": "isWhitelisted"}
        return Enrichment(
            entity=entity,
            summary=self._summary(report, score),
            disposition=self._disposition(report, score),
            score=score,
            tags=tuple(tag for tag, key in marks.items() if report.get(key) is True),
            facts={
                "reports": number_field(report, "totalReports"),
                "reporters": number_field(report, "numDistinctUsers"),
                "last_reported_at": text_field(report, "lastReportedAt"),
                "country": text_field(report, "countryCode"),
                "isp": text_field(report, "isp"),
                "usage": text_field(report, "usageType"),
                "domain": text_field(report, "domain"),
                "hostnames": text_list(report, "hostnames"),
            },
            link=f"https://www.abuseipdb.com/check/{entity.value}",
        )

    def _disposition(self, report: Mapping[str, Any], score: int) -> Disposition:
        if report.get("isWhitelisted") is True:
            return Disposition.BENIGN
        if score >= self.settings.malicious_from:
            return Disposition.MALICIOUS
        suspicious = score >= self.settings.suspicious_from
        return Disposition.SUSPICIOUS if suspicious else Disposition.UNKNOWN

    def _summary(self, report: Mapping[str, Any], score: int) -> str:
        days = self.settings.max_age_days
        reports = number_field(report, "totalReports") or 0
        times = "once" if reports == 1 else f"{reports:,} times"
        count = f"Reported {times}" if reports else "Not reported"
        network = ", ".join(
            filter(None, (text_field(report, "isp"), text_field(report, "countryCode")))
        )
        of = f" ({network})" if network else ""
        return f"{count} in the last {days} days, with an abuse confidence of {score}%{of}"

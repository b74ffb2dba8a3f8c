"""VirusTotal report addresses and contents."""

from __future__ import annotations

import hashlib
import re
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self
from urllib.parse import quote

from tocsin import Entity, EntityKind
from tocsin_plugins.lookups import (
    is_address,
    is_domain,
    number_field,
    object_field,
    text_field,
    text_list,
)

_HASH = re.compile(r"[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64}")
_GUI = "https://www.virustotal.com/gui"


def report_path(entity: Entity) -> str | None:
    """Return the path of an entity's report; None for unsupported values.

    Unsupported are invalid addresses and domains, and hashes other than MD5, SHA-1 and SHA-256.
    """
    value = entity.value
    match entity.kind:
        case EntityKind.IP:
            return f"/ip_addresses/{quote(value, safe='')}" if is_address(value) else None
        case EntityKind.DOMAIN:
            return f"/domains/{quote(value, safe='')}" if is_domain(value) else None
        case EntityKind.URL:
            # https://docs.virustotal.com/reference/url: Base64 without padding
            name = urlsafe_b64encode(value.encode("utf-8", "replace")).decode().rstrip("=")
            return f"/urls/{name}"
    return f"/files/{value}" if _HASH.fullmatch(value) else None


def report_link(entity: Entity) -> str:
    """Return the link to the report for people."""
    match entity.kind:
        case EntityKind.IP:
            return f"{_GUI}/ip-address/{entity.value}"
        case EntityKind.DOMAIN:
            return f"{_GUI}/domain/{quote(entity.value, safe='')}"
        case EntityKind.URL:
            return (
                f"{_GUI}/url/{hashlib.sha256(entity.value.encode('utf-8', 'replace')).hexdigest()}"
            )
    return f"{_GUI}/file/{entity.value}"


@dataclass(frozen=True, slots=True)
class ScanVerdicts:
    """Number of scanners by verdict."""

    malicious: int
    suspicious: int
    total: int
    """Scanners with a verdict."""

    @classmethod
    def of(cls, stats: Mapping[str, Any]) -> Self:
        """Return the counts from `last_analysis_stats`; anything but a number counts as zero."""
        counts = {
            name: max(number_field(stats, name) or 0, 0)
            for name in ("malicious", "suspicious", "harmless", "undetected")
        }
        return cls(counts["malicious"], counts["suspicious"], sum(counts.values()))

    @property
    def bad(self) -> int:
        """The number of scanners that flag it."""
        return self.malicious + self.suspicious

    @property
    def share(self) -> int | None:
        """The share of scanners that flag it, in percent; None if none has a verdict."""
        return round(100 * self.bad / self.total) if self.total else None


def collect_labels(report: Mapping[str, Any]) -> list[str]:
    """Return the names of the threat: its suggested label first, then VirusTotal's tags."""
    label = text_field(
        object_field(report, "popular_threat_classification"), "suggested_threat_label"
    )
    return ([label] if label else []) + text_list(report, "tags")


def collect_facts(report: Mapping[str, Any], verdicts: ScanVerdicts) -> dict[str, Any]:
    """Return the other parts of a report that help an analyst."""
    facts: dict[str, Any] = {
        "malicious": verdicts.malicious,
        "suspicious": verdicts.suspicious,
        "scanners": verdicts.total,
        "analysed_at": _format_time(number_field(report, "last_analysis_date")),
        "reputation": number_field(report, "reputation"),
        "network_owner": text_field(report, "as_owner"),
        "asn": number_field(report, "asn"),
        "country": text_field(report, "country"),
        "registrar": text_field(report, "registrar"),
        "created_at": _format_time(number_field(report, "creation_date")),
        "file_name": text_field(report, "meaningful_name"),
        "file_type": text_field(report, "type_description"),
        "title": text_field(report, "title"),
    }
    return {name: value for name, value in facts.items() if value is not None}


def _format_time(seconds: int | None) -> str | None:
    """Return seconds since the epoch as ISO 8601; None if out of range."""
    try:
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat()
    except (OverflowError, OSError, ValueError):
        return None

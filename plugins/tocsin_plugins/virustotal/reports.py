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
    """Return the path of an entity's report; None for what it cannot have one of.

    That is what is no address or domain, and a hash that is no MD5, SHA-1 or SHA-256.
    """
    value = entity.value
    match entity.kind:
        case EntityKind.IP:
            return f"/ip_addresses/{quote(value, safe='')}" if is_address(value) else None
        case EntityKind.DOMAIN:
            return f"/domains/{quote(value, safe='')}" if is_domain(value) else None
        case EntityKind.URL:
            # https://docs.virustotal.com/reference/url: its Base64 without padding
            name = urlsafe_b64encode(value.encode("utf-8", "replace")).decode().rstrip("=")
            return f"/urls/{name}"
    return f"/files/{value}" if _HASH.fullmatch(value) else None


def report_link(entity: Entity) -> str:
    """Return where a person can see the report."""
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
    """How many scanners say what."""

    malicious: int
    suspicious: int
    total: int
    """Those that came to a verdict."""

    @classmethod
    def of(cls, stats: Mapping[str, Any]) -> Self:
        """Return what `last_analysis_stats` says; what is no number there counts as none."""
        counts = {
            name: max(number_field(stats, name) or 0, 0)
            for name in ("malicious", "suspicious", "harmless", "undetected")
        }
        return cls(counts["malicious"], counts["suspicious"], sum(counts.values()))

    @property
    def bad(self) -> int:
        """How many flag it."""
        return self.malicious + self.suspicious

    @property
    def share(self) -> int | None:
        """The share of those that flag it, in percent; None where none has a verdict."""
        return round(100 * self.bad / self.total) if self.total else None


def collect_labels(report: Mapping[str, Any]) -> list[str]:
    """Return what the thing is called: the label of the threat first, then VirusTotal's tags."""
    label = text_field(
        object_field(report, "popular_threat_classification"), "suggested_threat_label"
    )
    return ([label] if label else []) + text_list(report, "tags")


def collect_facts(report: Mapping[str, Any], verdicts: ScanVerdicts) -> dict[str, Any]:
    """Return what else a report says that an analyst would look at."""
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
    """Return seconds since the epoch as ISO 8601; None where no calendar holds them."""
    try:
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat()
    except (OverflowError, OSError, ValueError):
        return None

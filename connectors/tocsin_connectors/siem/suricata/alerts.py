"""From one EVE alert record to the incident that it belongs to."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any

from tocsin import Alert, Incident, Severity
from tocsin_connectors.siem.records import (
    child,
    describe_value,
    normalize_address,
    number,
    parse_utc,
    text,
    texts,
    union,
)
from tocsin_connectors.siem.suricata.entities import find_entities, find_techniques

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SEVERITIES = {
    "critical": Severity.CRITICAL,
    "major": Severity.HIGH,
    "minor": Severity.LOW,
    "informational": Severity.INFORMATIONAL,
}
_LOWEST_PRIORITY = 255  # as the documentation of the rule keyword `priority` has it
_PRIORITIES = {1: Severity.HIGH, 2: Severity.MEDIUM, 3: Severity.LOW}
_IDENTITY_FIELDS = ("flow_id", "tx_id", "timestamp", "src_ip", "src_port", "dest_ip", "dest_port")


def build_incident(record: dict[str, Any], window: timedelta) -> Incident:
    """Return the incident of an alert's signature, source and stretch of the clock.

    Raises ValueError where the signature or a usable timestamp is missing.
    """
    alert = child(record, "alert")
    signature = _get_signature(alert)
    occurred_at = parse_timestamp(record)
    severity, raw_severity = _parse_severity(alert)
    title = text(alert, "signature") or f"Suricata signature {signature}"
    detection = Alert(
        external_id=_build_alert_id(record, signature),
        title=title,
        severity=severity or Severity.MEDIUM,
        occurred_at=occurred_at,
    )
    return Incident(
        external_id=_build_incident_id(record, signature, occurred_at, window),
        title=title,
        description=_describe(record, alert),
        severity=detection.severity,
        raw_severity=raw_severity,
        severity_assumed=severity is None,
        occurred_at=occurred_at,
        techniques=union([find_techniques(record)]),
        entities=union([find_entities(record)]),
        alerts=(detection,),
    )


def _get_signature(alert: dict[str, Any]) -> str:
    generator, signature = number(alert, "gid"), number(alert, "signature_id")
    if signature is None:
        raise ValueError(f"alert.signature_id is {describe_value(alert.get('signature_id'))}")
    return f"{1 if generator is None else generator}:{signature}"


def parse_timestamp(record: dict[str, Any]) -> datetime:
    """Return when the record was made; ValueError where it does not say."""
    if value := text(record, "timestamp"):
        return parse_utc(value)
    raise ValueError(f"timestamp is {describe_value(record.get('timestamp'))}")


def _build_incident_id(
    record: dict[str, Any], signature: str, occurred_at: datetime, window: timedelta
) -> str:
    source = normalize_address(text(record, "src_ip") or "") or "-"
    try:
        begin = _EPOCH + (occurred_at - _EPOCH) // window * window
    except OverflowError as error:
        raise ValueError(f"the time {occurred_at} is out of range") from error
    return f"{signature}/{source}/{begin.isoformat()}"


def _build_alert_id(record: dict[str, Any], signature: str) -> str:
    values = [record.get(key) for key in _IDENTITY_FIELDS]
    scalars = [value if isinstance(value, str | int) else None for value in values]
    return hashlib.sha256(repr([signature, *scalars]).encode()).hexdigest()[:32]


def _parse_severity(alert: dict[str, Any]) -> tuple[Severity | None, str | None]:
    """Return the severity, None where it is unknown, and Suricata's own word or number for it."""
    words = texts(child(alert, "metadata"), "signature_severity")
    for word in words:
        if severity := _SEVERITIES.get(word.casefold()):
            return severity, word
    priority = number(alert, "severity")
    raw = None if priority is None else str(priority)
    if priority is None or not 1 <= priority <= _LOWEST_PRIORITY:
        return None, next(iter(words), raw)
    return _PRIORITIES.get(priority, Severity.INFORMATIONAL), raw


def _describe(record: dict[str, Any], alert: dict[str, Any]) -> str:
    """Say what was seen: `Attempted Recon: Suricata allowed this TCP traffic (http).`"""
    category, protocol = text(alert, "category"), text(record, "app_proto")
    action = text(alert, "action") or "saw"
    sentence = f"Suricata {action} this {text(record, 'proto') or 'network'} traffic"
    sentence += f" ({protocol})." if protocol and protocol != "failed" else "."
    return f"{category}: {sentence}" if category else sentence

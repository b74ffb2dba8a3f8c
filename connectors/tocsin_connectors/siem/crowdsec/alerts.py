"""From an alert of the Local API to the incident that it is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from typing import Any

from tocsin import Alert, Entity, EntityKind, Incident, IncidentStatus, Severity
from tocsin_connectors.siem.crowdsec.techniques import techniques_of
from tocsin_connectors.siem.crowdsec.times import GO_ZERO, parse_time
from tocsin_connectors.siem.records import (
    child,
    children,
    described,
    named,
    number,
    text,
    union,
)

_CVE = re.compile(r"CVE[-_](\d{4})[-_](\d{4,})", re.IGNORECASE)
_BLOCKLISTS = ("crowdsecurity/community-blocklist", "lists:")
_BY_HAND = frozenset({"cscli", "cscli-import"})
# What the parsers of the hub call things
_META = {
    **dict.fromkeys(("source_ip", "dest_ip", "target_ip"), EntityKind.IP),
    **dict.fromkeys(("target_user", "source_user", "username", "user"), EntityKind.USER),
    "target_fqdn": EntityKind.DOMAIN,
    "machine": EntityKind.HOST,
}


def settled(alert: dict[str, Any]) -> dict[str, Any]:
    """Return the alert with `active` for each decision instead of its remaining `duration`.

    That differs in every answer; what is left is different only where something has changed.
    """
    decisions = [
        {key: value for key, value in decision.items() if key != "duration"}
        | {"active": not (text(decision, "duration") or "").startswith("-")}
        for decision in children(alert, "decisions")
    ]
    return {**alert, "decisions": decisions}


def is_blocklist(alert: dict[str, Any]) -> bool:
    """Return whether an alert only says that a list of addresses was brought up to date."""
    scope = text(child(alert, "source"), "scope") or ""
    return scope.startswith(_BLOCKLISTS)


def created_at(alert: dict[str, Any]) -> datetime | None:
    """Return when the server stored the alert, None where it does not say."""
    with suppress(ValueError):
        return parse_time(text(alert, "created_at") or "")
    return None


def external_id_of(alert: dict[str, Any]) -> str:
    """Return the alert's id and when it was created: ids begin anew with a new database.

    Raises ValueError where either is missing.
    """
    identifier, moment = number(alert, "id"), created_at(alert)
    if identifier is None:
        raise ValueError(f"id is {described(alert.get('id'))}")
    if moment is None:
        raise ValueError(f"created_at is no time: {alert.get('created_at')!r:.60}")
    return f"{identifier}@{moment:%Y-%m-%dT%H:%M:%SZ}"


def incident_of(alert: dict[str, Any]) -> Incident:
    """Return the incident of an alert that is `settled`.

    Raises ValueError where the alert has no usable id or time of creation.
    """
    external_id = external_id_of(alert)
    scenario = text(alert, "scenario") or "CrowdSec alert"
    severity, occurred_at = _severity(alert, scenario), started_at(alert)
    return Incident(
        external_id=external_id,
        external_number=external_id.partition("@")[0],
        title=scenario,
        description=_description(alert),
        severity=severity,
        severity_assumed=True,
        status=_status(alert),
        occurred_at=occurred_at,
        changed_at=created_at(alert),
        techniques=union([techniques_of(alert)]),
        entities=union([entities_of(alert)]),
        alerts=(
            Alert(
                external_id=external_id, title=scenario, severity=severity, occurred_at=occurred_at
            ),
        ),
    )


def _severity(alert: dict[str, Any], scenario: str) -> Severity:
    """Return how bad an alert is taken to be; CrowdSec does not say."""
    origins = {text(decision, "origin") for decision in children(alert, "decisions")}
    if alert.get("simulated") is True or (origins and origins <= _BY_HAND):
        return Severity.INFORMATIONAL
    return Severity.HIGH if _CVE.search(scenario) else Severity.MEDIUM


def _status(alert: dict[str, Any]) -> IncidentStatus:
    """Return Closed where there were decisions and all have ended, by time or by hand."""
    decisions = children(alert, "decisions")
    is_over = decisions and not any(decision.get("active") for decision in decisions)
    return IncidentStatus.CLOSED if is_over else IncidentStatus.NEW


def started_at(alert: dict[str, Any]) -> datetime:
    """Return when the first event was seen; when the alert was stored, where that is not said."""
    with suppress(ValueError):
        moment = parse_time(text(alert, "start_at") or "")
        if moment != GO_ZERO:
            return moment
    return created_at(alert) or GO_ZERO


def decided(alert: dict[str, Any]) -> str:
    """Return the types of the alert's decisions, each once: `ban, captcha`."""
    types = dict.fromkeys(text(it, "type") for it in children(alert, "decisions"))
    return ", ".join(kind for kind in types if kind)


def _description(alert: dict[str, Any]) -> str:
    """Say what was seen, of whom, by whom, and what was decided."""
    source = child(alert, "source")
    network = " ".join(text(source, key) or "" for key in ("as_name", "cn")).strip()
    parts = {
        "": text(alert, "message") or "",
        "Network: ": network,
        "Seen by: ": text(alert, "machine_id") or "",
        "Decided: ": decided(alert),
    }
    return "\n".join(f"{name}{value}" for name, value in parts.items() if value)


def entities_of(alert: dict[str, Any]) -> Iterator[Entity]:
    """Yield what the alert names: its source, what its events tell, vulnerabilities."""
    yield from source_of(child(alert, "source"))
    for event in children(alert, "events"):
        yield from named_in(pairs_of(event))
    for match in _CVE.finditer(text(alert, "scenario") or ""):
        yield Entity(EntityKind.CVE, f"CVE-{match[1]}-{match[2]}")


def pairs_of(event: dict[str, Any]) -> list[tuple[str, str]]:
    """Return what the parsers made of the line that an event is; a name may come twice."""
    pairs = ((text(item, "key"), text(item, "value")) for item in children(event, "meta"))
    return [(key, value) for key, value in pairs if key and value]


def named_in(pairs: Iterable[tuple[str, str]]) -> Iterator[Entity]:
    """Yield what a line names."""
    for key, value in pairs:
        if kind := _META.get(key):
            yield from named_as(kind, value)


def source_of(source: dict[str, Any]) -> Iterator[Entity]:
    """Yield whom the alert is about; `ip` repeats `value` even where that is no address."""
    for key in ("ip", "value"):
        yield from named(text(source, key) or "", EntityKind.IP)
    if (text(source, "scope") or "").casefold() == "username":
        yield from named_as(EntityKind.USER, text(source, "value") or "")


def named_as(kind: EntityKind, value: str) -> Iterator[Entity]:
    """Yield the entity of a kind that a text names; nothing where it names none."""
    if kind is not EntityKind.USER:
        yield from named(value, kind)
    elif value:
        yield Entity(kind, value)

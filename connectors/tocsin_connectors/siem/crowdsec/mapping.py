"""Mapping of alerts to incidents, their entities and techniques.

Most alerts do not name a technique. The technique is then derived from the scenario's name, in the
same way as the hub labels its scenarios (https://github.com/crowdsecurity/hub,
taxonomy/scenarios.json).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from typing import Any, NamedTuple

from tocsin import Alert, Entity, EntityKind, Incident, IncidentStatus, Severity
from tocsin_connectors.siem.crowdsec.go_time import GO_ZERO, parse_time
from tocsin_connectors.siem.records import (
    EntityRoles,
    child,
    children,
    describe_value,
    number,
    parse_host,
    text,
    texts,
    union,
)

_TECHNIQUE_LABEL = re.compile(r"attack[.:](T\d{4}(?:\.\d{3})?)", re.IGNORECASE)
_SCENARIO_NAME = re.compile(r"[\w.-]+/[\w.-]+")  # manual decisions have a sentence here
_ADDRESS_SCOPES = frozenset({"ip", "range"})


class ScenarioTechnique(NamedTuple):
    """Technique that words in the name of a scenario imply."""

    words: str
    technique: str
    reason: str
    remote_only: bool = False
    """Whether this holds only if the source of the alert is an address."""

    def fits(self, scenario: str, scope: str) -> bool:
        """Return whether the name holds the words and the scope of the source matches."""
        pattern = rf"(?<![a-z])(?:{self.words})(?![a-z])"
        fits_scope = not self.remote_only or scope.casefold() in _ADDRESS_SCOPES
        return fits_scope and re.search(pattern, scenario, re.IGNORECASE) is not None


SCENARIO_TECHNIQUES = (
    ScenarioTechnique("bf|bruteforce", "T1110", "password guessing"),
    ScenarioTechnique("dovecot-spam", "T1110", "failed sign-ins, despite the name"),
    ScenarioTechnique("user[-_]enum(?:eration)?", "T1589", "account enumeration"),
    ScenarioTechnique("scan|prob+ing|crawl", "T1595", "reconnaissance"),
    ScenarioTechnique("backdoors", "T1595", "scan for backdoors that others left"),
    ScenarioTechnique("sensitive-files|wpconfig", "T1595", "scan for exposed files"),
    ScenarioTechnique("open-proxy|bad-user-agent", "T1595", "behavior or name of a scanner"),
    # Not if the source is an account, as for local exploits such as CVE-2021-4034
    ScenarioTechnique(r"cve[-_]\d{4}[-_]\d+", "T1190", "exploit attempt", remote_only=True),
    ScenarioTechnique("(?:sqli|xss|path-traversal)(?!-prob)", "T1190", "attack on an application"),
    ScenarioTechnique(
        "vpatch|appsec|modsecurity|naxsi", "T1190", "report of a web application firewall"
    ),
    ScenarioTechnique("webshell", "T1505.003", "web server that runs third-party commands"),
    ScenarioTechnique("impossible-travel", "T1078", "one account used from distant places"),
    ScenarioTechnique("d?dos|req-limit-exceeded", "T1498", "request flood"),
)
"""Every matching entry adds its technique. The hub has no scenarios like `http-sqli` or `webshell`:
these are our own interpretation. Spam has no technique."""


def find_techniques(alert: dict[str, Any]) -> Iterator[str]:
    """Yield the techniques in the labels of an alert, or else the ones its scenario implies."""
    labels = [
        match[1].upper()
        for label in texts(alert, "labels")
        if (match := _TECHNIQUE_LABEL.fullmatch(label))
    ]
    yield from labels or _infer_techniques(alert)


def _infer_techniques(alert: dict[str, Any]) -> Iterator[str]:
    scenario = text(alert, "scenario") or ""
    scope = text(child(alert, "source"), "scope") or ""
    if _SCENARIO_NAME.fullmatch(scenario):
        yield from (
            technique.technique
            for technique in SCENARIO_TECHNIQUES
            if technique.fits(scenario, scope)
        )


_CVE = re.compile(r"CVE[-_](\d{4})[-_](\d{4,})", re.IGNORECASE)
_BLOCKLIST_SCOPES = ("crowdsecurity/community-blocklist", "lists:")
_MANUAL_ORIGINS = frozenset({"cscli", "cscli-import"})
# Keys that the parsers of the hub use
_META_KINDS = {
    **dict.fromkeys(("source_ip", "dest_ip", "target_ip"), EntityKind.IP),
    **dict.fromkeys(("target_user", "source_user", "username", "user"), EntityKind.USER),
    "target_fqdn": EntityKind.DOMAIN,
    "machine": EntityKind.HOST,
}


def stabilize_decisions(alert: dict[str, Any]) -> dict[str, Any]:
    """Replace the remaining `duration` of each decision with `active`.

    The duration differs in every response. The result differs only if something has changed.
    """
    decisions = [
        {key: value for key, value in decision.items() if key != "duration"}
        | {"active": not (text(decision, "duration") or "").startswith("-")}
        for decision in children(alert, "decisions")
    ]
    return {**alert, "decisions": decisions}


def is_blocklist(alert: dict[str, Any]) -> bool:
    """Return whether an alert only reports the update of a blocklist."""
    scope = text(child(alert, "source"), "scope") or ""
    return scope.startswith(_BLOCKLIST_SCOPES)


def parse_creation_time(alert: dict[str, Any]) -> datetime | None:
    """Return when the server stored the alert, or None if the alert has no such time."""
    with suppress(ValueError):
        return parse_time(text(alert, "created_at") or "")
    return None


def build_external_id(alert: dict[str, Any]) -> str:
    """Return the alert's ID with its creation time: a new database starts counting IDs again.

    Raises ValueError if either is missing.
    """
    identifier, moment = number(alert, "id"), parse_creation_time(alert)
    if identifier is None:
        raise ValueError(f"id is {describe_value(alert.get('id'))}")
    if moment is None:
        raise ValueError(f"created_at is not a time: {alert.get('created_at')!r:.60}")
    return f"{identifier}@{moment:%Y-%m-%dT%H:%M:%SZ}"


def build_incident(alert: dict[str, Any]) -> Incident:
    """Return the incident of an alert that went through `stabilize_decisions`.

    Raises ValueError if the alert has no usable ID or creation time.
    """
    external_id = build_external_id(alert)
    scenario = text(alert, "scenario") or "CrowdSec alert"
    severity, occurred_at = _assess_severity(alert, scenario), parse_start(alert)
    roles = find_roles(alert)
    return Incident(
        external_id=external_id,
        external_number=external_id.partition("@")[0],
        title=scenario,
        description=_describe(alert),
        severity=severity,
        severity_assumed=True,
        status=_get_status(alert),
        occurred_at=occurred_at,
        changed_at=parse_creation_time(alert),
        techniques=union([find_techniques(alert)]),
        entities=union([find_entities(alert)]),
        sources=roles.sources,
        targets=roles.targets,
        alerts=(
            Alert(
                external_id=external_id,
                title=scenario,
                severity=severity,
                occurred_at=occurred_at,
                rule=scenario if _SCENARIO_NAME.fullmatch(scenario) else None,
                record=alert,
            ),
        ),
    )


def _assess_severity(alert: dict[str, Any], scenario: str) -> Severity:
    """Return the assumed severity of an alert. CrowdSec has none."""
    origins = {text(decision, "origin") for decision in children(alert, "decisions")}
    if alert.get("simulated") is True or (origins and origins <= _MANUAL_ORIGINS):
        return Severity.INFORMATIONAL
    return Severity.HIGH if _CVE.search(scenario) else Severity.MEDIUM


def _get_status(alert: dict[str, Any]) -> IncidentStatus:
    """Return Closed if there were decisions and all have ended, by time or manually."""
    decisions = children(alert, "decisions")
    is_over = decisions and not any(decision.get("active") for decision in decisions)
    return IncidentStatus.CLOSED if is_over else IncidentStatus.NEW


def parse_start(alert: dict[str, Any]) -> datetime:
    """Return the time of the first event, or of the alert if that is missing."""
    with suppress(ValueError):
        moment = parse_time(text(alert, "start_at") or "")
        if moment != GO_ZERO:
            return moment
    return parse_creation_time(alert) or GO_ZERO


def join_decisions(alert: dict[str, Any]) -> str:
    """Return the distinct types of the alert's decisions: `ban, captcha`."""
    types = dict.fromkeys(text(decision, "type") for decision in children(alert, "decisions"))
    return ", ".join(kind for kind in types if kind)


def _describe(alert: dict[str, Any]) -> str:
    """Describe the alert: message, network, machine and decisions."""
    source = child(alert, "source")
    network = " ".join(text(source, key) or "" for key in ("as_name", "cn")).strip()
    parts = {
        "": text(alert, "message") or "",
        "Network: ": network,
        "Seen by: ": text(alert, "machine_id") or "",
        "Decided: ": join_decisions(alert),
    }
    return "\n".join(f"{name}{value}" for name, value in parts.items() if value)


def find_entities(alert: dict[str, Any]) -> Iterator[Entity]:
    """Yield the entities of an alert: its source, those in its events, and vulnerabilities."""
    yield from find_source(child(alert, "source"))
    for event in children(alert, "events"):
        yield from find_meta_entities(list_meta(event))
    for match in _CVE.finditer(text(alert, "scenario") or ""):
        yield Entity(EntityKind.CVE, f"CVE-{match[1]}-{match[2]}")


_SOURCE_KEYS = frozenset({"source_ip", "source_user"})


def find_roles(alert: dict[str, Any]) -> EntityRoles:
    """Return the source of an alert, and the targets of its events."""
    lines = [pair for event in children(alert, "events") for pair in list_meta(event)]
    senders = find_meta_entities(pair for pair in lines if pair[0] in _SOURCE_KEYS)
    sources = union([find_source(child(alert, "source")), senders])
    targets = union([find_meta_entities(pair for pair in lines if pair[0] not in _SOURCE_KEYS)])
    return EntityRoles(sources, tuple(other for other in targets if other not in sources))


def list_meta(event: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the metadata of the line that an event is. A key may occur twice."""
    pairs = ((text(item, "key"), text(item, "value")) for item in children(event, "meta"))
    return [(key, value) for key, value in pairs if key and value]


def find_meta_entities(pairs: Iterable[tuple[str, str]]) -> Iterator[Entity]:
    """Yield the entities in the metadata of a line."""
    for key, value in pairs:
        if kind := _META_KINDS.get(key):
            yield from parse_entity(kind, value)


def find_source(source: dict[str, Any]) -> Iterator[Entity]:
    """Yield the source of an alert. `ip` repeats `value` even if that is not an address."""
    for key in ("ip", "value"):
        yield from parse_host(text(source, key) or "", EntityKind.IP)
    if (text(source, "scope") or "").casefold() == "username":
        yield from parse_entity(EntityKind.USER, text(source, "value") or "")


def parse_entity(kind: EntityKind, value: str) -> Iterator[Entity]:
    """Yield the entity of a kind in a text, nothing if there is none."""
    if kind is not EntityKind.USER:
        yield from parse_host(value, kind)
    elif value:
        yield Entity(kind, value)

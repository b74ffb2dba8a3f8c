"""Events in alerts: the log lines that CrowdSec has counted, and its decisions.

The alert itself is not an event: it is the incident.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from hashlib import sha256
from ipaddress import ip_address, ip_network
from typing import Any

from tocsin import Entity, EntityKind, Relation, RelationType, SiemEvent
from tocsin_connectors.siem.crowdsec.go_time import (
    GO_ZERO,
    format_short,
    parse_duration,
    parse_time,
)
from tocsin_connectors.siem.crowdsec.mapping import (
    build_external_id,
    find_meta_entities,
    find_source,
    list_meta,
    parse_creation_time,
    parse_entity,
    parse_start,
)
from tocsin_connectors.siem.records import (
    child,
    children,
    number,
    relate,
    select_fields,
    text,
    union,
)

_TARGET_KINDS = (EntityKind.IP, EntityKind.DOMAIN, EntityKind.HOST)
_USER_KEYS = ("target_user", "username", "user", "source_user")
_TARGET_KEYS = ("target_fqdn", "target_ip", "dest_ip", "machine")
_REQUEST_KEYS = ("http_verb", "http_path", "http_status")


def find_lines(alert: dict[str, Any], entity: Entity) -> Iterator[SiemEvent]:
    """Yield the log lines of an alert that involve an entity.

    Raises ValueError if the alert has no usable ID or creation time.
    """
    incident, scenario = build_external_id(alert), text(alert, "scenario")
    alike = Counter[str]()
    for event in children(alert, "events"):
        meta, at = dict(list_meta(event)), _parse_line_time(event, alert)
        attackers = _find_attackers(meta, alert)
        entities = union(
            [attackers, _find_counted_source(alert), find_meta_entities(list_meta(event))]
        )
        digest = _build_digest(text(alert, "machine_id"), at, meta)
        alike[digest] += 1
        if entity in entities:
            yield SiemEvent(
                external_id=f"{digest}-{alike[digest]}",
                occurred_at=at,
                summary=" ".join(_summarize_line(meta, attackers, scenario).split()),
                entities=entities,
                relations=union([_find_relations(meta, attackers, at)]),
                fields={**meta, "alert": incident, "scenario": scenario},
            )


def _parse_line_time(event: dict[str, Any], alert: dict[str, Any]) -> datetime:
    """Return the time of a line, or the start of its alert if the line has no time."""
    with suppress(ValueError):
        moment = parse_time(text(event, "timestamp") or "")
        if moment != GO_ZERO:
            return moment
    return parse_start(alert)


def _build_digest(machine: str | None, at: datetime, meta: dict[str, str]) -> str:
    """Return the ID of a line, which several scenarios may have counted."""
    line = json.dumps([machine, at.isoformat(), sorted(meta.items())])
    return sha256(line.encode()).hexdigest()[:16]


def _find_counted_source(alert: dict[str, Any]) -> Iterator[Entity]:
    """Yield the source of an alert if every line involves it.

    The lines of a range belong to any address in it; `ip` is only one of them.
    """
    source = child(alert, "source")
    yield from find_source({**source, "ip": None})


def _find_attackers(meta: dict[str, str], alert: dict[str, Any]) -> list[Entity]:
    named = [*parse_entity(EntityKind.IP, meta.get("source_ip", ""))]
    return named or [
        entity for entity in _find_counted_source(alert) if entity.kind is EntityKind.IP
    ]


def _summarize_line(meta: dict[str, str], attackers: list[Entity], scenario: str | None) -> str:
    """Summarize a line: `ssh failed-auth for root from 203.0.113.7 on bastion`."""
    what = meta.get("log_type") or meta.get("service") or scenario or "a line"
    user = next((meta[key] for key in _USER_KEYS if key in meta), None)
    place = next((meta[key] for key in _TARGET_KEYS if key in meta), None)
    parts = [what.replace("_", " "), *(meta[key] for key in _REQUEST_KEYS if key in meta)]
    parts += [f"for {user}"] if user else []
    parts += [f"from {attacker.value}" for attacker in attackers]
    parts += [f"on {place}"] if place else []
    return " ".join(parts)


def _find_relations(
    meta: dict[str, str], attackers: list[Entity], at: datetime
) -> Iterator[Relation]:
    """Yield the connections, accounts and sign-ins of the attacker."""
    others = [entity for entity in find_meta_entities(meta.items()) if entity not in attackers]
    targets = [other for other in others if other.kind in _TARGET_KINDS]
    users = [other for other in others if other.kind is EntityKind.USER]
    yield from relate(attackers, RelationType.CONNECTED_TO, targets, at)
    yield from relate(attackers, RelationType.RELATED_TO, users, at)
    if _is_successful_sign_in(meta):
        machines = [target for target in targets if target.kind is EntityKind.HOST]
        yield from relate(users, RelationType.LOGGED_ON_TO, machines, at)


def _is_successful_sign_in(meta: dict[str, str]) -> bool:
    """Return whether a line reports a successful sign-in.

    The hub's sshd-success-logs use `auth_status`; others use a `log_type`.
    """
    return meta.get("auth_status") == "success" or meta.get("log_type") == "auth_success"


_DECISION_FIELDS = ("type", "scope", "value", "origin", "scenario")
_TIME_PRECISION = timedelta(seconds=5)  # the server time has whole seconds


def find_decisions(alert: dict[str, Any], entity: Entity, now: datetime) -> Iterator[SiemEvent]:
    """Yield the decisions of an alert on an entity, given the current server time.

    Raises ValueError if the alert has no usable ID or creation time.
    """
    incident, at = build_external_id(alert), parse_creation_time(alert) or GO_ZERO
    is_source = entity in find_source(child(alert, "source"))
    for position, decision in enumerate(children(alert, "decisions")):
        if is_source or _concerns_entity(decision, entity):
            name, validity = (
                number(decision, "id"),
                _compute_validity(decision, _parse_begin(alert), now),
            )
            yield SiemEvent(
                external_id=f"{incident}/decision-{position if name is None else name}",
                occurred_at=at,
                summary=" ".join(_summarize_decision(decision, validity.get("lasts")).split()),
                entities=union([(entity,), find_source(decision)]),
                fields={**select_fields(decision, _DECISION_FIELDS), **validity, "alert": incident},
            )


def _concerns_entity(decision: dict[str, Any], entity: Entity) -> bool:
    """Return whether a decision applies to an entity or to a range that contains it."""
    if entity.kind is not EntityKind.IP:
        return entity in find_source(decision)
    try:
        network = ip_network(text(decision, "value") or "", strict=False)
        return ip_address(entity.value) in network
    except ValueError:
        return False


def _parse_begin(alert: dict[str, Any]) -> datetime:
    """Return the start of decisions: CrowdSec adds their length to the time of the last event."""
    with suppress(ValueError):
        return parse_time(text(alert, "stop_at") or "")
    return parse_creation_time(alert) or GO_ZERO


def _compute_validity(decision: dict[str, Any], begin: datetime, now: datetime) -> dict[str, Any]:
    """Return the total length and the end of a decision. `duration` is the remaining time."""
    left = text(decision, "duration") or ""
    with suppress(ValueError, OverflowError):
        lasts = (
            max(round((now + parse_duration(left) - begin) / _TIME_PRECISION), 0) * _TIME_PRECISION
        )
        return {
            "lasts": format_short(lasts),
            "until": (begin + lasts).isoformat(),
            "active": not left.startswith("-"),
        }
    return {}


def _summarize_decision(decision: dict[str, Any], lasts: str | None) -> str:
    """Summarize a decision: `ban of 203.0.113.7 for 4h by crowdsec: crowdsecurity/ssh-bf`."""
    origin, scenario = text(decision, "origin"), text(decision, "scenario")
    parts = [text(decision, "type") or "decision", "of", text(decision, "value") or "nobody"]
    parts += [f"for {lasts}"] if lasts else []
    parts += [f"by {origin}"] if origin else []
    return " ".join(parts) + (f": {scenario}" if scenario else "")

"""From an alert to the events in it: the lines of logs that CrowdSec has counted.

The alert itself is none of them: it is the incident.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from hashlib import sha256
from typing import Any

from tocsin import Entity, EntityKind, Relation, RelationType, SiemEvent
from tocsin_connectors.siem.crowdsec.alerts import (
    external_id_of,
    named_as,
    named_in,
    pairs_of,
    source_of,
    started_at,
)
from tocsin_connectors.siem.crowdsec.times import GO_ZERO, parse_time
from tocsin_connectors.siem.records import child, children, text, union
from tocsin_connectors.siem.relating import related

_TARGETS = (EntityKind.IP, EntityKind.DOMAIN, EntityKind.HOST)
_USERS = ("target_user", "username", "user", "source_user")
_PLACES = ("target_fqdn", "target_ip", "dest_ip", "machine")
_REQUEST = ("http_verb", "http_path", "http_status")


def lines_of(alert: dict[str, Any], entity: Entity) -> Iterator[SiemEvent]:
    """Yield the lines that an alert has counted and that have to do with an entity.

    Raises ValueError where the alert has no usable id or time of creation.
    """
    incident, scenario = external_id_of(alert), text(alert, "scenario")
    alike = Counter[str]()
    for event in children(alert, "events"):
        meta, at = dict(pairs_of(event)), _time_of(event, alert)
        attackers = _attackers(meta, alert)
        entities = union([attackers, _counted_for(alert), named_in(pairs_of(event))])
        digest = _digest(text(alert, "machine_id"), at, meta)
        alike[digest] += 1
        if entity in entities:
            yield SiemEvent(
                external_id=f"{digest}-{alike[digest]}",
                occurred_at=at,
                summary=" ".join(_summary(meta, attackers, scenario).split()),
                entities=entities,
                relations=union([_relations(meta, attackers, at)]),
                fields={**meta, "alert": incident, "scenario": scenario},
            )


def _time_of(event: dict[str, Any], alert: dict[str, Any]) -> datetime:
    """Return when a line was written; when its alert began, where that is not said."""
    with suppress(ValueError):
        moment = parse_time(text(event, "timestamp") or "")
        if moment != GO_ZERO:
            return moment
    return started_at(alert)


def _digest(machine: str | None, at: datetime, meta: dict[str, str]) -> str:
    """Return what names a line, which may have been counted by several scenarios."""
    line = json.dumps([machine, at.isoformat(), sorted(meta.items())])
    return sha256(line.encode()).hexdigest()[:16]


def _counted_for(alert: dict[str, Any]) -> Iterator[Entity]:
    """Yield the source of an alert, where each of its lines has to do with it.

    The lines of a range are those of any address in it; `ip` is only one of them.
    """
    source = child(alert, "source")
    yield from source_of({**source, "ip": None})


def _attackers(meta: dict[str, str], alert: dict[str, Any]) -> list[Entity]:
    named = [*named_as(EntityKind.IP, meta.get("source_ip", ""))]
    return named or [it for it in _counted_for(alert) if it.kind is EntityKind.IP]


def _summary(meta: dict[str, str], attackers: list[Entity], scenario: str | None) -> str:
    """Say what a line tells: `ssh failed-auth of root from 203.0.113.7 at bastion`."""
    what = meta.get("log_type") or meta.get("service") or scenario or "a line"
    user = next((meta[key] for key in _USERS if key in meta), None)
    place = next((meta[key] for key in _PLACES if key in meta), None)
    parts = [what.replace("_", " "), *(meta[key] for key in _REQUEST if key in meta)]
    parts += [f"of {user}"] if user else []
    parts += [f"from {it.value}" for it in attackers]
    parts += [f"at {place}"] if place else []
    return " ".join(parts)


def _relations(meta: dict[str, str], attackers: list[Entity], at: datetime) -> Iterator[Relation]:
    """Yield whom the attacker has spoken with, as whom, and who has got in."""
    others = [it for it in named_in(meta.items()) if it not in attackers]
    targets = [it for it in others if it.kind in _TARGETS]
    users = [it for it in others if it.kind is EntityKind.USER]
    yield from related(attackers, RelationType.CONNECTED_TO, targets, at)
    yield from related(attackers, RelationType.RELATED_TO, users, at)
    if _has_got_in(meta):
        machines = [it for it in targets if it.kind is EntityKind.HOST]
        yield from related(users, RelationType.LOGGED_ON_TO, machines, at)


def _has_got_in(meta: dict[str, str]) -> bool:
    """Return whether a line says that someone signed in.

    So do the hub's sshd-success-logs, by `auth_status`; others have a `log_type` for it.
    """
    return meta.get("auth_status") == "success" or meta.get("log_type") == "auth_success"

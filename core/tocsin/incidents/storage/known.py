"""Stored parts of received incidents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, and_, bindparam, func, select

from tocsin.incidents.storage.merge import EntityRole, IncidentChange, compare_versions
from tocsin.incidents.storage.normalize import IDENTIFIER
from tocsin.model import Alert, Entity, EntityKind, Incident
from tocsin.store import clean_identifier, is_in
from tocsin.store.tables import incident_alerts, incident_entities, incidents

_CHUNK = 50
_IS_ASKED = and_(
    incidents.c.provider == bindparam("provider"), is_in(incidents.c.external_id, "external_ids")
)
# Who stores another version at once waits, and then finds this one; the order avoids deadlocks
_STORED = (
    select(incidents).where(_IS_ASKED).order_by(incidents.c.number).with_for_update(key_share=True)
)
_ENTITIES = select(
    incident_entities.c.incident_number,
    incident_entities.c.kind,
    incident_entities.c.value,
    incident_entities.c.role,
).where(is_in(incident_entities.c.incident_number, "numbers"))
_ALERTS = select(incident_alerts.c.incident_number, incident_alerts.c.external_id).where(
    is_in(incident_alerts.c.incident_number, "numbers"),
    is_in(incident_alerts.c.external_id, "external_ids"),
)
_COUNT = select(func.count()).select_from(incidents).where(_IS_ASKED)


def count_unknown(connection: Connection, provider: str, page: Iterable[Incident]) -> int:
    """Return how many of these incidents are new; an estimate if some are redacted later."""
    ids = {
        clean_identifier(incident.external_id, IDENTIFIER)
        for incident in page
        if isinstance(incident.external_id, str) and not incident.only_if_stored
    }
    asked = {"provider": provider, "external_ids": list(ids)}
    return len(ids) - int(connection.execute(_COUNT, asked).scalar_one())


def load_changes(
    connection: Connection, provider: str, page: Mapping[str, Incident]
) -> list[IncidentChange]:
    """Return the change of each incident, with the parts that are not stored yet.

    A new incident that may only change a stored one has none.
    """
    stored = _load_stored(connection, provider, list(page))
    entities = _load_entities(connection, [row["number"] for row in stored.values()])
    alerts = _load_alerts(
        connection, {row["number"]: page[name].alerts for name, row in stored.items()}
    )
    changes = []
    for external_id, incident in page.items():
        row = stored.get(external_id)
        if row is None and incident.only_if_stored:
            continue
        number = row["number"] if row else None
        known = entities.get(number, {}), alerts.get(number, set())
        changes.append(compare_versions(incident, row, *known))
    return changes


def _load_stored(
    connection: Connection, provider: str, external_ids: Sequence[str]
) -> dict[str, Mapping[str, Any]]:
    asked = {"provider": provider, "external_ids": external_ids}
    rows: dict[str, Mapping[str, Any]] = {}
    rows |= {row["external_id"]: row for row in connection.execute(_STORED, asked).mappings()}
    return rows


def _load_entities(
    connection: Connection, numbers: Sequence[int]
) -> dict[int | None, dict[Entity, EntityRole | None]]:
    known: dict[int | None, dict[Entity, EntityRole | None]] = {}
    if not numbers:
        return known
    for number, kind, value, role in connection.execute(_ENTITIES, {"numbers": numbers}):
        entity = Entity(EntityKind(kind), value)
        known.setdefault(number, {})[entity] = EntityRole(role) if role else None
    return known


def _load_alerts(
    connection: Connection, mentioned: Mapping[int, Sequence[Alert]]
) -> dict[int | None, set[str]]:
    """Return the IDs of the mentioned alerts that are stored, by incident number."""
    known: dict[int | None, set[str]] = {}
    # The databases combine each number with each identifier, so the lists are kept short
    for numbers in _chunks(list(mentioned)):
        names = {alert.external_id for number in numbers for alert in mentioned[number]}
        if names:
            asked = {"numbers": numbers, "external_ids": sorted(names)}
            for number, external_id in connection.execute(_ALERTS, asked):
                known.setdefault(number, set()).add(external_id)
    return known


def _chunks(numbers: Sequence[int]) -> Iterator[Sequence[int]]:
    for start in range(0, len(numbers), _CHUNK):
        yield numbers[start : start + _CHUNK]

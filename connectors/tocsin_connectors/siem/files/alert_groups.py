"""Base class for file providers whose alerts form incidents by clock interval."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import Field
from typing_extensions import TypeVar

from tocsin import Duration, Incident
from tocsin_connectors.siem.files.provider import FileProvider
from tocsin_connectors.siem.records import union

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


ProviderSettings = TypeVar("ProviderSettings", bound="GroupingFileProvider.Settings", default=Any)


class GroupingFileProvider(FileProvider[ProviderSettings]):
    """Base class for file providers that group single alerts into incidents."""

    class Settings(FileProvider.Settings):
        """Settings shared by file providers that group alerts."""

        window: Duration = Field(
            default=timedelta(hours=1),
            gt=timedelta(0),
            le=timedelta(days=366),
            description="The length of the time intervals by which Tocsin groups alerts. "
            "Alerts with the same rule and source in the same interval form one incident.",
        )

    def fold(self, incidents: list[Incident]) -> tuple[Incident, ...]:
        """Merge the incidents of one page by `external_id`."""
        groups: dict[str, list[Incident]] = {}
        for incident in incidents:
            groups.setdefault(incident.external_id, []).append(incident)
        return tuple(_fold(group) for group in groups.values())


def name_group(occurred_at: datetime, window: timedelta, *parts: str) -> str:
    """Return the ID of an incident: its parts, and the start of the clock interval.

    Raises ValueError if the time is out of range.
    """
    try:
        begin = _EPOCH + (occurred_at - _EPOCH) // window * window
    except OverflowError as error:
        raise ValueError(f"the time {occurred_at} is out of range") from error
    return "/".join((*parts, begin.isoformat()))


def name_alert(values: Iterable[object]) -> str:
    """Return the ID of an alert that has none, from the values that tell it apart.

    Only texts and whole numbers count.
    """
    scalars = [value if isinstance(value, str | int) else None for value in values]
    return hashlib.sha256(repr(scalars).encode()).hexdigest()[:32]


def _fold(group: list[Incident]) -> Incident:
    worst = max(group, key=lambda incident: incident.severity.rank)
    return replace(
        worst,
        occurred_at=min(incident.occurred_at for incident in group),
        techniques=union(incident.techniques for incident in group),
        tactics=union(incident.tactics for incident in group),
        entities=union(incident.entities for incident in group),
        sources=union(incident.sources for incident in group),
        targets=union(incident.targets for incident in group),
        alerts=union(incident.alerts for incident in group),
    )

"""Client of the Security Analytics API: detectors, alerts and findings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote

from tocsin import ApiResponse, Broken, Refused
from tocsin_connectors.siem.indices.client import IndexClient, parse_search
from tocsin_connectors.siem.interval_split import list_within_row_limit
from tocsin_connectors.siem.opensearch.mapping import AlertReference, parse_change_time
from tocsin_connectors.siem.opensearch.pagination import DetectorCursor
from tocsin_connectors.siem.records import child, children, text, texts

PLUGIN = "/_plugins/_security_analytics"
DETECTORS, ALERTS = f"{PLUGIN}/detectors/_search", f"{PLUGIN}/alerts"
FINDINGS = f"{PLUGIN}/findings/_search"
MAX_DETECTORS = 1_000
MAX_FINDINGS = 50
"""Maximum number of findings read per alert."""
_NOT_FOUND = 404


@dataclass(frozen=True, slots=True)
class Detector:
    """Detector of Security Analytics."""

    id: str
    name: str | None
    indices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AlertRows:
    """One page of alerts, unparsed."""

    alerts: Sequence[dict[str, Any]]
    total: int
    server_time: datetime | None


class SecurityAnalyticsClient:
    """Client of Security Analytics in one cluster."""

    def __init__(self, cluster: IndexClient) -> None:
        self._cluster = cluster

    async def detectors(self) -> dict[str, Detector]:
        """Return the visible detectors by ID, none before the first one is created."""
        body = {"size": MAX_DETECTORS, "query": {"match_all": {}}}
        try:
            answer = await self._cluster.ask("POST", DETECTORS, json=body)
        except Refused as error:
            if error.status == _NOT_FOUND and b".opensearch-sap" in (error.response or b""):
                return {}
            raise
        found = parse_search(answer, f"POST {DETECTORS}")
        if found.total > MAX_DETECTORS:
            raise Broken(f"found {found.total} detectors; Tocsin supports at most {MAX_DETECTORS}")
        return {incident.id: incident for hit in found.hits if (incident := _parse_detector(hit))}

    async def alerts(self, cursor: DetectorCursor, size: int) -> AlertRows:
        """Return the alerts of a cursor."""
        answer = await self._cluster.ask("GET", ALERTS, query={**cursor.query, "size": size})
        match answer.json:
            case {"alerts": list(alerts), "total_alerts": int(total)} if _are_objects(alerts):
                return AlertRows(alerts, total, answer.server_time)
        raise Broken(f"GET {ALERTS} did not return alerts and their total")

    async def acknowledge(self, detector: str, alert: str) -> bool:
        """Acknowledge an alert. Return False if it cannot be acknowledged."""
        path = f"{PLUGIN}/detectors/{quote(detector, safe='')}/_acknowledge/alerts"
        answer = await self._cluster.ask("POST", path, json={"alerts": [alert]})
        match answer.json:
            case {"acknowledged": [*done], "failed": list()}:
                return any(
                    isinstance(record, dict) and record.get("id") == alert for record in done
                )
        raise Broken(f"POST {path} returned a response without `acknowledged` and `failed`")

    async def try_acknowledging(self, detector: str) -> None:
        """Acknowledge a nonexistent alert, to test the permission."""
        with suppress(Broken):  # the response for a nonexistent alert
            await self.acknowledge(detector, "tocsin-check")

    async def findings(self, detector: str, names: Sequence[str]) -> list[dict[str, Any]]:
        """Return the findings with these IDs that exist."""
        if not names:
            return []
        asked = ",".join(names[:MAX_FINDINGS])
        query = {"detector_id": detector, "findingIds": asked, "size": MAX_FINDINGS}
        return parse_findings(await self._cluster.ask("GET", FINDINGS, query=query))

    async def try_findings(self, detector: str) -> None:
        """Request one finding, to test the permission."""
        query = {"detector_id": detector, "size": 1}
        parse_findings(await self._cluster.ask("GET", FINDINGS, query=query))


def join_indices(detectors: Iterable[Detector]) -> str:
    """Return the indices of detectors, separated by commas."""
    return ",".join(sorted({index for detector in detectors for index in detector.indices}))


def parse_findings(answer: ApiResponse) -> list[dict[str, Any]]:
    """Return the findings in a response. Raises `Broken` if it is invalid."""
    match answer.json:
        case {"findings": list(findings), "total_findings": int()} if _are_objects(findings):
            return findings
    raise Broken(f"GET {FINDINGS} did not return findings and their total")


def _are_objects(values: list[Any]) -> bool:
    return all(isinstance(value, dict) for value in values)


def _parse_detector(hit: dict[str, Any]) -> Detector | None:
    source = child(hit, "_source")
    source = child(source, "detector") or source
    name = text(hit, "_id")
    inputs = (child(source_input, "detector_input") for source_input in children(source, "inputs"))
    indices = tuple(index for input_ in inputs for index in texts(input_, "indices"))
    return Detector(name, text(source, "name"), indices) if name else None


_PAGE_SIZE = 100
DETECTOR = "tocsin_detector"
"""Member that holds the detector of a record; `detector_id` is not always right."""


async def list_rows(
    analytics: SecurityAnalyticsClient, cursor: DetectorCursor, size: int
) -> tuple[DetectorCursor, AlertRows]:
    """Return the largest initial part of a cursor that can be paged through, and its rows."""
    return await list_within_row_limit(
        cursor,
        lambda part: analytics.alerts(part, size),
        lambda part, rows: part.is_too_large(rows.total),
    )


async def probe_rows(analytics: SecurityAnalyticsClient, cursor: DetectorCursor) -> AlertRows:
    """Return no rows if the API can list anything outside of a cursor's interval."""
    answer = await analytics.alerts(cursor.probe(), 1)
    return AlertRows((), 0, answer.server_time)


async def find_alert(analytics: SecurityAnalyticsClient, external_id: str) -> dict[str, Any] | None:
    """Return the record of an alert, or None if it or its detector no longer exists."""
    name = AlertReference.parse(external_id)
    detectors = await analytics.detectors()
    if name is None or name.detector not in detectors:
        return None
    detector = {"id": name.detector, "name": detectors[name.detector].name}
    cursor: DetectorCursor | None = DetectorCursor.of_moment(name.detector, name.start)
    while cursor is not None:
        rows = await analytics.alerts(cursor, _PAGE_SIZE)
        for alert in rows.alerts:
            if alert.get("id") == name.alert and parse_change_time(alert) is not None:
                return {**alert, DETECTOR: detector}
        cursor = cursor.following(len(rows.alerts), rows.total, _PAGE_SIZE)
    return None

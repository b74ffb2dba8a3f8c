"""Acknowledging alerts: of all that can be said of one, Security Analytics takes this alone."""

from __future__ import annotations

from tocsin import IncidentStatus, Refused
from tocsin_connectors.siem.opensearch.client import DETECTOR, SecurityAnalyticsClient, find_alert
from tocsin_connectors.siem.opensearch.mapping import STATUSES
from tocsin_connectors.siem.records import text


async def set_status(
    analytics: SecurityAnalyticsClient, external_id: str, status: IncidentStatus
) -> None:
    """Acknowledge an alert, where it is not yet; `Refused` where it is none, or is over."""
    if status is not IncidentStatus.ACTIVE:
        raise Refused(f"an alert can be acknowledged, and not be made {status}")
    record = await find_alert(analytics, external_id)
    if record is None:
        raise Refused(f"there is no alert {external_id}")
    state = text(record, "state") or ""
    if STATUSES.get(state.casefold()) is IncidentStatus.ACTIVE:
        return
    if not await analytics.acknowledge(record[DETECTOR]["id"], record["id"]):
        raise Refused(f"only an alert that is ACTIVE can be acknowledged; this one is {state!r}")

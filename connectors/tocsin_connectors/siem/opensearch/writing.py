"""Write-back to alerts: acknowledgment, the only supported change."""

from __future__ import annotations

from tocsin import IncidentStatus, Refused
from tocsin_connectors.siem.opensearch.client import DETECTOR, SecurityAnalyticsClient, find_alert
from tocsin_connectors.siem.opensearch.mapping import STATUSES
from tocsin_connectors.siem.records import text


async def set_status(
    analytics: SecurityAnalyticsClient, external_id: str, status: IncidentStatus
) -> None:
    """Acknowledge an alert, unless it is acknowledged already.

    Raises `Refused` if it does not exist or has ended.
    """
    if status is not IncidentStatus.ACTIVE:
        raise Refused(f"OpenSearch alerts can only be acknowledged; {status} is not supported")
    record = await find_alert(analytics, external_id)
    if record is None:
        raise Refused(f"the alert {external_id} does not exist")
    state = text(record, "state") or ""
    if STATUSES.get(state.casefold()) is IncidentStatus.ACTIVE:
        return
    if not await analytics.acknowledge(record[DETECTOR]["id"], record["id"]):
        raise Refused(f"only an ACTIVE alert can be acknowledged; this one is {state!r}")

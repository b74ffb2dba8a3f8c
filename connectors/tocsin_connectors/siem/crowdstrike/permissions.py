"""Permission check of a CrowdStrike API client."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from http import HTTPStatus

from tocsin import Refused, Window
from tocsin_connectors.siem.crowdstrike.client import FalconClient
from tocsin_connectors.siem.crowdstrike.pagination import AlertCursor
from tocsin_connectors.siem.crowdstrike.search import FalconSearcher
from tocsin_connectors.siem.permissions import PermissionProbe, find_refused

READ = "Alerts: Read"
WRITE = "Alerts: Write"
SEARCH = "NGSIEM: Read and Write"
_RECENT = timedelta(minutes=1)


async def find_permission_problems(
    falcon: FalconClient, searcher: FalconSearcher | None, now: datetime, *, writes: bool
) -> list[str]:
    """Return the missing scopes of the API client, found with test requests.

    Raises errors other than a refusal.
    """
    lately = Window(now - _RECENT, now)
    tried: dict[str, PermissionProbe] = {
        READ: partial(falcon.alerts, AlertCursor.first(lately), now, 1)
    }
    if searcher is not None:
        tried[SEARCH] = partial(searcher.run, "test(?value == ?value) | tail(1)", "tocsin", lately)
    if writes:
        tried[WRITE] = partial(_change_nothing, falcon)
    return [f"the API client lacks the scope {scope}" for scope in await find_refused(tried)]


async def _change_nothing(falcon: FalconClient) -> None:
    """Send an empty change for no alert. An API client with the scope gets 400."""
    try:
        await falcon.change([], {})
    except Refused as error:
        if error.status != HTTPStatus.BAD_REQUEST:
            raise

"""Permission check of a Google SecOps service account."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from http import HTTPStatus

from tocsin import CredentialsRefused, Refused, Window
from tocsin_connectors.siem.permissions import PermissionProbe, find_refused
from tocsin_connectors.siem.secops.client import EVERY_RULE, SecOpsClient

LIST = "chronicle.legacies.legacySearchDetections"
CURATED = "chronicle.legacies.legacySearchCuratedDetections"
RULE = "chronicle.curatedRules.get"
GET = "chronicle.legacies.legacyGetAlert"
SEARCH = "chronicle.events.udmSearch"
UPDATE = "chronicle.legacies.legacyUpdateAlert"
PERMISSIONS = (
    LIST,
    f"{CURATED}, if curated_rules are set",
    f"{RULE}, so that `tocsin check` can detect unknown curated rules",
    GET,
    SEARCH,
    f"{UPDATE}, if write_back is on",
)
_MISSING_ALERT = "de_00000000-0000-0000-0000-000000000000"
_RECENT = timedelta(minutes=1)
_ABSENT = (HTTPStatus.NOT_FOUND, HTTPStatus.BAD_REQUEST)


async def find_permission_problems(
    client: SecOpsClient, curated: Sequence[str], now: datetime, *, writes: bool
) -> list[str]:
    """Return the missing permissions, found with test requests. Raises other errors."""
    recent = Window(now - _RECENT, now)
    tried: dict[str, PermissionProbe] = {
        LIST: partial(client.detections, EVERY_RULE, recent, None, 1),
        GET: partial(client.alert, _MISSING_ALERT),
        SEARCH: partial(client.search, 'principal.ip = "203.0.113.1"', recent),
    }
    for rule in curated[:1]:
        tried[CURATED] = partial(client.detections, rule, recent, None, 1)
    if writes:
        tried[UPDATE] = partial(_change_nothing, client)
    lacking = await find_refused(tried)
    unknown = [rule for rule in curated if not await _is_known(client, rule)]
    return [
        *(f"the service account lacks the permission {name}" for name in lacking),
        *(f"the curated rule {rule} does not exist" for rule in unknown),
    ]


async def _is_known(client: SecOpsClient, rule: str) -> bool:
    """Return whether a rule may exist. Reading detections needs no permission to list rules."""
    try:
        return await client.has_curated_rule(rule)
    except CredentialsRefused as error:
        if error.status != HTTPStatus.FORBIDDEN:
            raise
        return True


async def _change_nothing(client: SecOpsClient) -> None:
    """Give feedback on a nonexistent alert, which only tests the permission."""
    try:
        await client.update(_MISSING_ALERT, {})
    except Refused as error:
        if error.status not in _ABSENT:
            raise

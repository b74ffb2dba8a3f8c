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
_NOBODY = "de_00000000-0000-0000-0000-000000000000"
_LATELY = timedelta(minutes=1)
_ABSENT = (HTTPStatus.NOT_FOUND, HTTPStatus.BAD_REQUEST)


async def problems(
    chronicle: SecOpsClient, curated: Sequence[str], now: datetime, *, writes: bool
) -> list[str]:
    """Return the missing permissions, found with test requests. Raises other errors."""
    lately = Window(now - _LATELY, now)
    tried: dict[str, PermissionProbe] = {
        LIST: partial(chronicle.detections, EVERY_RULE, lately, None, 1),
        GET: partial(chronicle.alert, _NOBODY),
        SEARCH: partial(chronicle.search, 'principal.ip = "203.0.113.1"', lately),
    }
    for rule in curated[:1]:
        tried[CURATED] = partial(chronicle.detections, rule, lately, None, 1)
    if writes:
        tried[UPDATE] = partial(_change_nothing, chronicle)
    lacking = await find_refused(tried)
    unknown = [it for it in curated if not await _is_known(chronicle, it)]
    return [
        *(f"the service account lacks the permission {name}" for name in lacking),
        *(f"the curated rule {rule} does not exist" for rule in unknown),
    ]


async def _is_known(chronicle: SecOpsClient, rule: str) -> bool:
    """Return whether a rule may exist. Reading detections needs no permission to list rules."""
    try:
        return await chronicle.has_curated_rule(rule)
    except CredentialsRefused as error:
        if error.status != HTTPStatus.FORBIDDEN:
            raise
        return True


async def _change_nothing(chronicle: SecOpsClient) -> None:
    """Give feedback on a nonexistent alert, which only tests the permission."""
    try:
        await chronicle.update(_NOBODY, {})
    except Refused as error:
        if error.status not in _ABSENT:
            raise

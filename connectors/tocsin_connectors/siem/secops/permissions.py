"""Permission check of a Google SecOps service account."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from http import HTTPStatus
from typing import NamedTuple

from tocsin import CredentialsRefused, Refused, Window
from tocsin_connectors.siem.permissions import PermissionProbe, change_absent, find_refused
from tocsin_connectors.siem.secops.client import COUNT_CURATED, EVERY_RULE, SecOpsClient

LIST = "chronicle.legacies.legacySearchDetections"
CURATED = "chronicle.legacies.legacySearchCuratedDetections"
COUNT = "chronicle.curatedRuleSetCategories.countAllCuratedRuleSetDetections"
RULE = "chronicle.curatedRules.get"
GET = "chronicle.legacies.legacyGetAlert"
SEARCH = "chronicle.events.udmSearch"
UPDATE = "chronicle.legacies.legacyUpdateAlert"
PERMISSIONS = (
    LIST,
    f"{CURATED} (unless curated_detections is off)",
    f"{COUNT} (if curated_detections is on and curated_rules is not set)",
    f"{RULE} (so that `tocsin check` can detect unknown curated rules)",
    GET,
    SEARCH,
    f"{UPDATE} (if write_back or close_from_tickets is on)",
)
_MISSING_ALERT = "de_00000000-0000-0000-0000-000000000000"
_RECENT = timedelta(minutes=1)
_WEEK = timedelta(days=7)
_WILDCARDS = ("-", "*")
NOT_COUNTED = (HTTPStatus.BAD_REQUEST, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND)
"""Statuses of an instance, or a service account, that does not count curated detections."""


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


class CuratedRules(NamedTuple):
    """Details about an instance that are needed to read curated detections."""

    detail: str = ""
    problems: tuple[str, ...] = ()


async def examine_curated_rules(client: SecOpsClient, now: datetime) -> CuratedRules:
    """Return how many curated rules have detections this week, and which wildcards find them.

    The documentation names no wildcard, so each is tried if there are detections to find.
    """
    week = Window(now - _WEEK, now)
    try:
        rules = await client.curated_rules(week)
    except (CredentialsRefused, Refused) as refused:
        if refused.status not in NOT_COUNTED:
            raise
        problem = (
            f"Tocsin does not read curated detections, because {COUNT_CURATED} returned "
            f"{refused.status}: grant the permission {COUNT} to the service account, or set "
            "curated_rules"
        )
        return CuratedRules(problems=(problem,))
    if not rules:
        return CuratedRules("no curated rule has detections this week")
    found = [f"`{name}` {await _try_wildcard(client, name, week)}" for name in _WILDCARDS]
    fired = f"{len(rules)} curated rules have detections this week; Tocsin reads them one by one"
    return CuratedRules(f"{fired} (tested wildcards: {' and '.join(found)})")


async def _try_wildcard(client: SecOpsClient, name: str, window: Window) -> str:
    try:
        found = await client.curated_detections(name, window, None, 1)
    except Refused:
        return "is refused"
    return "works" if found.records else "finds nothing"


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
    await change_absent(client.update(_MISSING_ALERT, {}))

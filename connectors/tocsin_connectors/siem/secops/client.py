"""Client of one Google SecOps instance: detections, events and feedback.

https://cloud.google.com/chronicle/docs/reference/rest. So far, the only endpoints for detections
are those that Google calls legacy. The older Backstory API, which ends in July 2027, is not used.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any

from tocsin import Api, ApiResponse, Broken, Clock, Refused, Tools, TryLater, Window
from tocsin_connectors.responses import get_page_token
from tocsin_connectors.siem.records import children, text
from tocsin_connectors.siem.secops.service_account import ServiceAccount
from tocsin_connectors.siem.secops.settings import SecOpsSettings


class RequestQuota:
    """Limit of requests within any interval of a given length."""

    def __init__(self, clock: Clock, most: int, within: timedelta, patience: timedelta) -> None:
        """Store the limits. No request waits longer than `patience`."""
        self._clock = clock
        self._within = within
        self._patience = patience
        self._turns: deque[datetime] = deque(maxlen=most)
        self._waiting = asyncio.Lock()

    async def acquire(self) -> None:
        """Wait until a request is allowed. Raises `TryLater` if that takes too long."""
        async with self._waiting:
            wait = self._wait()
            if wait > self._patience:
                raise TryLater("SecOps rate limit reached", after=wait, unsent=True)
            if wait > timedelta(0):
                await self._clock.sleep(wait)
            self._turns.append(self._clock.now())

    def _wait(self) -> timedelta:
        if len(self._turns) < (self._turns.maxlen or 0):
            return timedelta(0)
        return min(self._turns[0] + self._within - self._clock.now(), self._within)


EVERY_RULE = "-"
RULE_DETECTIONS = "legacy:legacySearchDetections", "detections"
CURATED_DETECTIONS = "legacy:legacySearchCuratedDetections", "curatedDetections"
GET_ALERT, UPDATE_ALERT = "legacy:legacyGetAlert", "legacy:legacyUpdateAlert"
SEARCH_EVENTS = "udmSearch"
COUNT_CURATED = "countAllCuratedRuleSetDetections"
MAX_EVENTS = 1_000
_MINUTE, _HOUR, _SECOND = timedelta(minutes=1), timedelta(hours=1), timedelta(seconds=1)
_SEARCHES_PER_HOUR = 120  # https://cloud.google.com/chronicle/docs/reference/service-limits
_ABSENT_STATUSES = (HTTPStatus.NOT_FOUND, HTTPStatus.BAD_REQUEST)
_PAGING_MEMBERS = frozenset({"nextPageToken", "respTooLargeDetectionsTruncated"})
_CURATED_RULE = re.compile(r"ur_[A-Za-z0-9_-]{1,100}")
SecOpsRecord = dict[str, Any]


@dataclass(frozen=True, slots=True)
class DetectionPage:
    """A page of detections."""

    records: Sequence[SecOpsRecord]
    next_token: str | None
    server_time: datetime | None


class SecOpsClient:
    """Requests to one instance. All raise what `Api.request` raises."""

    def __init__(self, settings: SecOpsSettings, tools: Tools) -> None:
        """Store the dependencies. Performs no I/O."""
        self._alerting = {"alertState": "ALERTING"} if settings.detections == "alerting" else {}
        self._api = Api(tools, settings, sign_in=ServiceAccount(settings, tools).sign_in)
        self._instance = (
            f"/v1alpha/projects/{settings.project}/locations/{settings.region}"
            f"/instances/{settings.instance}"
        )
        clock = tools.clock
        self._lists = RequestQuota(clock, settings.lists_per_minute, _MINUTE, patience=_MINUTE)
        self._gets = RequestQuota(clock, 1, _SECOND, patience=_MINUTE)
        self._searches = RequestQuota(clock, _SEARCHES_PER_HOUR, _HOUR, patience=_MINUTE)

    async def detections(
        self, rule: str, window: Window, token: str | None, limit: int
    ) -> DetectionPage:
        """Return a page of the detections of a curated rule, or of all others, in a window.

        The detections were created in the window.
        """
        kind = RULE_DETECTIONS if rule == EVERY_RULE else CURATED_DETECTIONS
        return await self._list(kind, rule, window, token, limit)

    async def curated_detections(
        self, rule: str, window: Window, token: str | None, limit: int
    ) -> DetectionPage:
        """Return a page of the detections of a curated rule, even if it is called `-`."""
        return await self._list(CURATED_DETECTIONS, rule, window, token, limit)

    async def _list(
        self, kind: tuple[str, str], rule: str, window: Window, token: str | None, limit: int
    ) -> DetectionPage:
        method, member = kind
        await self._lists.acquire()
        answer = await self._api.get(
            f"{self._instance}/{method}",
            ruleId=rule,
            startTime=format_time(window.start),
            endTime=format_time(window.end),
            listBasis="CREATED_TIME",
            pageSize=limit,
            pageToken=token,
            **self._alerting,
        )
        body = _parse_object(answer, method)
        # Google omits empty members: `{}` means no detections
        records = (
            body.get(member, []) if member in body or not body.keys() - _PAGING_MEMBERS else None
        )
        if not isinstance(records, list) or not _are_objects(records):
            raise Broken(f"GET {method} returned a response without the list `{member}`")
        if body.get("respTooLargeDetectionsTruncated"):
            raise Broken(f"GET {method} omitted detections because the response became too large")
        return DetectionPage(records, get_page_token(body, "nextPageToken"), answer.server_time)

    async def curated_rules(self, window: Window) -> tuple[str, ...]:
        """Return the IDs of the curated rules that have detections in a window.

        The list of curated detections has no wildcard: for `-` it is empty.
        """
        body = {
            "interval": {
                "startTime": format_time(window.start),
                "endTime": format_time(window.end),
            }
        }
        path = f"{self._instance}:{COUNT_CURATED}"
        found = _parse_object(await self._api.request("POST", path, json=body), COUNT_CURATED)
        if found and not found.keys() & {"curatedRuleCounts", "curatedRuleSetCounts"}:
            raise Broken(f"POST {COUNT_CURATED} returned a response without `curatedRuleCounts`")
        names = (
            (text(counted, "curatedRule") or "").rpartition("/")[2]
            for counted in children(found, "curatedRuleCounts")
            if counted.get("count") not in {0, "0"}
        )
        return tuple(sorted({name for name in names if _CURATED_RULE.fullmatch(name)}))

    async def has_curated_rule(self, rule: str) -> bool:
        """Return whether a curated rule exists."""
        try:
            await self._api.get(f"{self._instance}/curatedRules/{rule}")
        except Refused as refused:
            if refused.status in _ABSENT_STATUSES:
                return False
            raise
        return True

    async def alert(self, identifier: str) -> SecOpsRecord | None:
        """Return a detection as an alert, or None if it does not exist."""
        await self._gets.acquire()
        path = f"{self._instance}/{GET_ALERT}"
        try:
            answer = await self._api.get(path, alertId=identifier, includeDetections="true")
        except Refused as refused:
            if refused.status in _ABSENT_STATUSES:
                return None
            raise
        match _parse_object(answer, GET_ALERT):
            case {"alert": dict(alert)}:
                return alert
        raise Broken(f"GET {GET_ALERT} returned a response without `alert`")

    async def update(self, identifier: str, feedback: Mapping[str, str]) -> None:
        """Give feedback on an alert."""
        body = {"alertId": identifier, "feedback": dict(feedback)}
        path = f"{self._instance}/{UPDATE_ALERT}"
        _parse_object(await self._api.request("POST", path, json=body), UPDATE_ALERT)

    async def search(self, query: str, window: Window) -> tuple[Sequence[SecOpsRecord], bool]:
        """Return the events that match a query in a window, and whether there are more."""
        await self._searches.acquire()
        answer = await self._api.get(
            f"{self._instance}:{SEARCH_EVENTS}",
            **{
                "query": query,
                "timeRange.startTime": format_time(window.start),
                "timeRange.endTime": format_time(window.end),
                "limit": MAX_EVENTS,
            },
        )
        body = _parse_object(answer, SEARCH_EVENTS)
        events = body.get("events", [])
        if not isinstance(events, list) or not _are_objects(events):
            raise Broken(f"GET {SEARCH_EVENTS} returned a response without the list `events`")
        return events, body.get("moreDataAvailable") is True


def format_time(moment: datetime) -> str:
    """Format a time for queries (RFC 3339)."""
    return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


def _parse_object(answer: ApiResponse, method: str) -> SecOpsRecord:
    if isinstance(answer.json, dict):
        return answer.json
    raise Broken(f"{method} did not return an object")


def _are_objects(records: list[Any]) -> bool:
    return all(isinstance(record, dict) for record in records)

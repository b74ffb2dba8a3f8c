"""Search jobs: submission, polling, paged results and deletion.

The results of a finished job never change, so offsets into them are stable. For an expired job,
Splunk responds with 404, which raises `Refused`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Self
from urllib.parse import quote

from tocsin import Api, ApiResponse, Broken, Clock, PluginFailure, TryLater
from tocsin_connectors.siem.records import child, children, number, text
from tocsin_connectors.siem.splunk.spl import SplSearch

JOBS = "/services/search/v2/jobs"
APP = "SplunkEnterpriseSecuritySuite"
MAX_RESULTS = 50_000
"""Default limit of results (`maxresultrows`), beyond which Splunk silently drops them."""
_PAGE_SIZE = 1_000
_RETENTION = {
    "timeout": "600",
    "auto_cancel": "120",
}  # seconds: after its end, and without polling
_FIRST_PAUSE, _LONGEST_PAUSE = timedelta(seconds=0.2), timedelta(seconds=5)
_INCOMPLETE = (
    "might be incomplete",
    "may be incomplete",
    "unable to distribute to peer",
    "ended prematurely",
    "search process did not exit cleanly",
    "streamed search execute failed",
    "reached its time limit",
    "auto-finalized",
    "truncated",
)
"""Phrases in messages of any type that report results missing due to a peer or a limit."""

SplunkRecord = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ResultCursor:
    """Position in the results of a finished job."""

    sid: str
    offset: int
    total: int
    server_time: datetime | None = None

    @property
    def is_end(self) -> bool:
        """Whether all results were read."""
        return self.offset >= self.total

    def encode(self) -> list[Any]:
        """Return the page token; the inverse of `decode`."""
        return [self.sid, self.offset, self.total]

    @classmethod
    def decode(cls, token: Any) -> Self:
        """Return the cursor of a page token; the inverse of `encode`."""
        sid, offset, total = token
        return cls(sid, offset, total)


class SearchJobs:
    """Search jobs of one provider, with limited concurrency."""

    def __init__(self, api: Api, clock: Clock, most: int, patience: timedelta) -> None:
        self._api = api
        self._clock = clock
        self._free = asyncio.Semaphore(most)
        self._patience = patience

    async def run(self, search: SplSearch) -> ResultCursor:
        """Run a search to its end, and return the first cursor of its results.

        Raises `TryLater` if Splunk reports missing results or too many searches, and `Broken` if
        the search fails or takes too long.
        """
        async with self._free:
            sid = await self._start_job(search)
            try:
                return await self._wait_for_job(sid)
            except PluginFailure:
                await self.clear(sid)
                raise

    async def page(
        self, cursor: ResultCursor, count: int
    ) -> tuple[Sequence[SplunkRecord], ResultCursor]:
        """Return at most `count` results, and the next cursor."""
        path = f"{JOBS}/{quote(cursor.sid, safe='')}/results"
        answer = await self._api.get(path, output_mode="json", offset=cursor.offset, count=count)
        body = answer.json if isinstance(answer.json, dict) else {}
        records = body.get("results")
        if not isinstance(records, list) or body.get("preview") is True:
            raise Broken(f"GET {path} returned a response without final `results`")
        if not records or not all(isinstance(record, dict) for record in records):
            left = cursor.total - cursor.offset
            raise Broken(f"GET {path} returned none of the {left} remaining results")
        check_complete(list_messages(body))
        offset = cursor.offset + len(records)
        return records, replace(cursor, offset=offset, server_time=answer.server_time)

    async def all(self, search: SplSearch) -> list[SplunkRecord]:
        """Return all results of a search."""
        cursor, found = await self.run(search), list[SplunkRecord]()
        while not cursor.is_end:
            records, cursor = await self.page(cursor, _PAGE_SIZE)
            found += records
        await self.clear(cursor.sid)
        return found

    async def clear(self, sid: str) -> None:
        """Delete a job, which Splunk otherwise does after ten minutes."""
        with suppress(PluginFailure):
            await self._api.request("DELETE", f"{JOBS}/{quote(sid, safe='')}")

    async def _start_job(self, search: SplSearch) -> str:
        form = {
            "search": search.spl,
            "exec_mode": "normal",
            "output_mode": "json",
            "adhoc_search_level": "verbose",
            "namespace": APP,
            "max_count": str(MAX_RESULTS),
            **_RETENTION,
            **search.bounds,
        }
        answer = await self._api.request("POST", JOBS, form=form)
        match answer.json:
            case {"sid": str(sid)} if sid:
                return sid
        raise Broken(f"POST {JOBS} returned a response without `sid`")

    async def _wait_for_job(self, sid: str) -> ResultCursor:
        """Wait for a job to finish, and return the first cursor of its results."""
        began, pause = self._clock.now(), _FIRST_PAUSE
        while True:
            answer = await self._api.get(f"{JOBS}/{quote(sid, safe='')}", output_mode="json")
            if (total := _parse_total(answer)) is not None:
                return ResultCursor(sid, 0, total, answer.server_time)
            if self._clock.now() - began > self._patience:
                raise Broken(f"the search did not finish within {self._patience}")
            await self._clock.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)


def _parse_total(answer: ApiResponse) -> int | None:
    """Return the number of results of a job, or None while it runs."""
    entries = children(answer.json, "entry") if isinstance(answer.json, dict) else []
    content = child(entries[0], "content") if entries else {}
    if not text(content, "dispatchState"):
        raise Broken(f"GET {JOBS} returned a response without `entry` and `dispatchState`")
    if _is_set(content, "isFailed"):
        raise Broken(f"a search failed: {'; '.join(list_messages(content)) or 'no reason given'}")
    if not _is_set(content, "isDone"):
        return None
    check_complete(list_messages(content))
    if _is_set(content, "isFinalized"):
        raise TryLater("the search was finalized early; results are missing")
    total = number(content, "resultCount")
    if total is None:
        raise Broken(f"GET {JOBS} returned a response without `resultCount`")
    if total >= MAX_RESULTS:
        raise Broken(f"a search has {total:,} results; Splunk may have omitted some")
    return total


def list_messages(body: Mapping[str, Any]) -> list[str]:
    """Return the messages of a search, with their types."""
    return [
        f"{text(message, 'type') or 'INFO'}: {text(message, 'text') or ''}"
        for message in children(dict(body), "messages")
    ]


def check_complete(messages: Sequence[str]) -> None:
    """Check that no message reports missing results. Raises `TryLater` otherwise."""
    for message in messages:
        if message.startswith("FATAL") or any(
            phrase in message.casefold() for phrase in _INCOMPLETE
        ):
            raise TryLater(f"the search results are incomplete: {message:.300}")


def _is_set(content: Mapping[str, Any], key: str) -> bool:
    return content.get(key) in (True, 1, "1", "true")

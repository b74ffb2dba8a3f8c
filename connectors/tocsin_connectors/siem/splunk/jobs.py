"""Search jobs: begun, waited for, read page by page, and cleared away.

The results of a job stay as they were when it ended, whatever is indexed meanwhile, so that an
offset into them is safe. A job that has expired is unknown to Splunk (404): `Refused`.
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
"""What Splunk keeps of a search by default (`maxresultrows`); beyond, it drops without a word."""
_PAGE_SIZE = 1_000
_RETENTION = {
    "timeout": "600",
    "auto_cancel": "120",
}  # seconds: after its end, and unless it is asked
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
"""Said in messages of any type where a peer or a limit has left something out."""

SplunkRecord = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ResultCursor:
    """A place in the results of a job that is done."""

    sid: str
    offset: int
    total: int
    server_time: datetime | None = None

    @property
    def is_end(self) -> bool:
        """Whether there are no more results."""
        return self.offset >= self.total

    def encode(self) -> list[Any]:
        """Return the token that `decode` turns back into this."""
        return [self.sid, self.offset, self.total]

    @classmethod
    def decode(cls, token: Any) -> Self:
        """Return the place that `encode` made the token of."""
        sid, offset, total = token
        return cls(sid, offset, total)


class SearchJobs:
    """The search jobs of one provider, of which only so many are under way at once."""

    def __init__(self, api: Api, clock: Clock, most: int, patience: timedelta) -> None:
        self._api = api
        self._clock = clock
        self._free = asyncio.Semaphore(most)
        self._patience = patience

    async def run(self, search: SplSearch) -> ResultCursor:
        """Return the beginning of the results, once all of them are there.

        Raises `TryLater` where Splunk says that some are missing, or runs too many searches;
        `Broken` where the search fails or takes too long.
        """
        async with self._free:
            sid = await self._begin(search)
            try:
                return await self._done(sid)
            except PluginFailure:
                await self.clear(sid)
                raise

    async def page(
        self, place: ResultCursor, count: int
    ) -> tuple[Sequence[SplunkRecord], ResultCursor]:
        """Return so many results at most, and the place behind them."""
        path = f"{JOBS}/{quote(place.sid, safe='')}/results"
        answer = await self._api.get(path, output_mode="json", offset=place.offset, count=count)
        body = answer.json if isinstance(answer.json, dict) else {}
        records = body.get("results")
        if not isinstance(records, list) or body.get("preview") is True:
            raise Broken(f"GET {path} answered without final `results`")
        if not records or not all(isinstance(record, dict) for record in records):
            raise Broken(f"GET {path} answered none of the {place.total - place.offset} results")
        check_complete(list_messages(body))
        offset = place.offset + len(records)
        return records, replace(place, offset=offset, server_time=answer.server_time)

    async def all(self, search: SplSearch) -> list[SplunkRecord]:
        """Return all results of a search."""
        place, found = await self.run(search), list[SplunkRecord]()
        while not place.is_end:
            records, place = await self.page(place, _PAGE_SIZE)
            found += records
        await self.clear(place.sid)
        return found

    async def clear(self, sid: str) -> None:
        """Have Splunk forget a job, which else it does by itself after ten minutes."""
        with suppress(PluginFailure):
            await self._api.request("DELETE", f"{JOBS}/{quote(sid, safe='')}")

    async def _begin(self, search: SplSearch) -> str:
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
        raise Broken(f"POST {JOBS} answered without `sid`")

    async def _done(self, sid: str) -> ResultCursor:
        """Return the beginning of the results once the job has come to its end."""
        began, pause = self._clock.now(), _FIRST_PAUSE
        while True:
            answer = await self._api.get(f"{JOBS}/{quote(sid, safe='')}", output_mode="json")
            if (total := _parse_total(answer)) is not None:
                return ResultCursor(sid, 0, total, answer.server_time)
            if self._clock.now() - began > self._patience:
                raise Broken(f"a search was not done after {self._patience}")
            await self._clock.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)


def _parse_total(answer: ApiResponse) -> int | None:
    """Return how many results a job has, None while it runs."""
    entries = children(answer.json, "entry") if isinstance(answer.json, dict) else []
    content = child(entries[0], "content") if entries else {}
    if not text(content, "dispatchState"):
        raise Broken(f"GET {JOBS} answered without `entry` and `dispatchState`")
    if _is_set(content, "isFailed"):
        raise Broken(
            f"a search failed: {'; '.join(list_messages(content)) or 'nothing is said why'}"
        )
    if not _is_set(content, "isDone"):
        return None
    check_complete(list_messages(content))
    if _is_set(content, "isFinalized"):
        raise TryLater("a search was ended before it was done, so that results are missing")
    total = number(content, "resultCount")
    if total is None:
        raise Broken(f"GET {JOBS} answered without `resultCount`")
    if total >= MAX_RESULTS:
        raise Broken(f"a search has {total:,} results, of which Splunk may have left some out")
    return total


def list_messages(body: Mapping[str, Any]) -> list[str]:
    """Return what Splunk says about a search, each with its type."""
    return [
        f"{text(it, 'type') or 'INFO'}: {text(it, 'text') or ''}"
        for it in children(dict(body), "messages")
    ]


def check_complete(messages: Sequence[str]) -> None:
    """Return where no message says that results are missing; `TryLater` with it where one does."""
    for message in messages:
        if message.startswith("FATAL") or any(it in message.casefold() for it in _INCOMPLETE):
            raise TryLater(f"the results of a search are not whole: {message:.300}")


def _is_set(content: Mapping[str, Any], key: str) -> bool:
    return content.get(key) in (True, 1, "1", "true")

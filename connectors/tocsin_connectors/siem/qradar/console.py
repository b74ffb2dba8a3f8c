"""Requests to a console: the token, the version of the API, and lists that are asked for in ranges.

https://www.ibm.com/docs/en/qradar-common?topic=versions-paging-syntax
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tocsin import Api, ApiResponse, Broken, Tools
from tocsin_connectors.siem.qradar.settings import QRadarSettings

QRadarRecord = dict[str, Any]
MAX_RANGES = 200
"""A list has fewer parts, or it does not end."""
_TOTAL = re.compile(r"items (?:\d+-\d+|\*)/(\d+)")


@dataclass(frozen=True, slots=True)
class RecordRange:
    """What stands in one range of a list."""

    records: Sequence[QRadarRecord]
    total: int | None
    """How many there are in all; None where the console does not say."""
    server_time: datetime | None

    def ends(self, first: int, asked: int) -> bool:
        """Return whether nothing is behind it, given where it began and how many were asked for.

        The documentation leaves open whether the total is that of the list or of the part, so one
        that has all that was asked for is never the last.
        """
        count = len(self.records)
        return not count or (
            count < asked and self.total is not None and self.total <= first + count
        )


class QRadarClient:
    """Requests to one console; all of them raise what `Api.request` raises."""

    def __init__(self, tools: Tools, settings: QRadarSettings) -> None:
        """Keep what is needed; do no I/O."""
        self._api = Api(tools, settings)
        self._token = settings.token
        self._version = {"Version": settings.api_version}

    async def request(
        self, method: str, path: str, *, span: str | None = None, **query: Any
    ) -> ApiResponse:
        """Return the answer to a request below `/api`; `span` is a range such as `0-49`."""
        bounds = {} if span is None else {"Range": f"items={span}"}
        headers = {"SEC": self._token.get_secret_value(), **self._version, **bounds}
        return await self._api.request(method, f"/api{path}", query=query, headers=headers)

    async def versions(self) -> Sequence[QRadarRecord]:
        """Return the versions of the API that the console knows, asked for in none of them."""
        headers = {"SEC": self._token.get_secret_value()}
        path = "/api/help/versions"
        answer = await self._api.request("GET", path, headers=headers)
        return _parse_records(answer.json, path)

    async def part(self, path: str, first: int, count: int, **query: Any) -> RecordRange:
        """Return so many records of a list at most, from the one at `first` on."""
        answer = await self.request("GET", path, span=f"{first}-{first + count - 1}", **query)
        found = _TOTAL.fullmatch(answer.headers.get("Content-Range", "").strip())
        total = int(found[1]) if found else None
        return RecordRange(_parse_records(answer.json, path), total, answer.server_time)

    async def all(
        self, path: str, count: int, most: int | None = None, **query: Any
    ) -> list[QRadarRecord]:
        """Return all records of a list that does not change, of which there are `most` at most.

        So many are asked for at once as `count` says. Raises `Broken` where the list does not end.
        """
        found = list[QRadarRecord]()
        for _ in range(MAX_RANGES):
            first = len(found)
            part = await self.part(path, first, count, **query)
            found += part.records
            if part.ends(first, count) or len(found) == most:
                return found
        raise Broken(f"GET {path} has more than {MAX_RANGES} parts")


def _parse_records(content: Any, path: str) -> list[QRadarRecord]:
    if not isinstance(content, list) or not all(isinstance(it, dict) for it in content):
        raise Broken(f"GET {path} answered something else than a list of objects")
    return content

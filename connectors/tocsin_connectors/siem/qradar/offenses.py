"""The offenses of a console: by their ids, and by the times at which something became of them.

https://www.ibm.com/docs/en/qradar-common?topic=endpoints-siem-endpoints
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, TypeVar

from tocsin import Broken, Refused, Tools, Window
from tocsin_connectors.siem.qradar.console import QRadarClient, QRadarRecord, RecordRange
from tocsin_connectors.siem.qradar.fields import to_milliseconds
from tocsin_connectors.siem.qradar.walk import OffenseCursor, iterate_ids

OFFENSES = "/siem/offenses"
CLOSED, STARTED = "close_time", "start_time"
PERSISTED, UPDATED, FIRST_PERSISTED = (
    "last_persisted_time",
    "last_updated_time",
    "first_persisted_time",
)
_FIELDS = (
    *("id", "description", "status", "magnitude", "severity", "offense_type", "offense_source"),
    *("assigned_to", "follow_up", "closing_user", "closing_reason_id", "domain_id", "categories"),
    *("source_network", "destination_networks", "source_address_ids"),
    *("local_destination_address_ids", STARTED, CLOSED, UPDATED),
    *("rules(id,type)", "log_sources(id,name,type_name)"),
)
_LATER_FIELDS = (FIRST_PERSISTED, PERSISTED)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class OffensePage:
    """A page of offenses, and the step behind it; None at the end."""

    part: RecordRange
    following: OffenseCursor | None


class OffenseClient:
    """Asks for offenses, always by name for what is read of them: consoles are slow.

    Older versions of the API tell no `last_persisted_time`, which changes with whatever changes;
    `last_updated_time` only does with new events. Which it is, is found out by asking.
    """

    def __init__(self, console: QRadarClient, tools: Tools) -> None:
        """Keep what is needed; do no I/O."""
        self._console = console
        self._log = tools.log
        self._is_old = False

    @property
    def clock(self) -> str:
        """The field that tells when something last became of an offense."""
        return UPDATED if self._is_old else PERSISTED

    async def changed(self, window: Window, step: OffenseCursor, limit: int) -> OffensePage:
        """Return a page of the offenses that changed in a window, by the console's own time."""
        return await self._either(
            lambda: self._page(_build_time_filter(self.clock, window), step, limit)
        )

    async def made(self, window: Window, step: OffenseCursor, limit: int) -> OffensePage:
        """Return a page of the offenses that were made in a window, or began in it."""
        return await self._either(lambda: self._page(self._made(window), step, limit))

    async def closed(self, window: Window, step: OffenseCursor, limit: int) -> OffensePage:
        """Return a page of the offenses that were closed in a window."""
        return await self._either(
            lambda: self._page(_build_time_filter(CLOSED, window), step, limit)
        )

    async def behind(self, step: OffenseCursor, limit: int) -> OffensePage:
        """Return a page of the offenses behind an id."""
        return await self._either(lambda: self._page("", step, limit))

    async def newest(self) -> tuple[int | None, RecordRange]:
        """Return the highest id there is, and the answer.

        It is 0 where there are no offenses, and None where the newest does not tell its id.
        """
        part = await self._console.part(OFFENSES, 0, 1, sort="-id", fields="id")
        known = [it for _, it in iterate_ids(part.records)]
        return (max(known, default=None) if part.records else 0), part

    async def one(self, identifier: str) -> QRadarRecord | None:
        """Return the offense of an id, None where there is none."""
        if not (identifier.isascii() and identifier.isdecimal()):
            return None
        try:
            return await self._either(lambda: self._get(f"{OFFENSES}/{int(identifier)}"))
        except Refused as refused:
            if refused.is_missing:
                return None
            raise

    async def _page(self, clause: str, step: OffenseCursor, limit: int) -> OffensePage:
        wanted = " and ".join(filter(None, [clause, f"id > {step.after}"]))
        query = {"filter": wanted, "sort": "+id", "fields": self._fields}
        part = await self._console.part(OFFENSES, step.skipped, limit, **query)
        return OffensePage(part, step.following(part, limit))

    async def _get(self, path: str) -> QRadarRecord:
        answer = await self._console.request("GET", path, fields=self._fields)
        if not isinstance(answer.json, dict) or "id" not in answer.json:
            raise Broken(f"GET {path} answered without `id`")
        return answer.json

    def _made(self, window: Window) -> str:
        """Return the clause for `made`: when an offense was made, older versions do not tell."""
        began = _build_time_filter(STARTED, window)
        return (
            began if self._is_old else f"({_build_time_filter(FIRST_PERSISTED, window)} or {began})"
        )

    @property
    def _fields(self) -> str:
        return ",".join(_FIELDS if self._is_old else (*_FIELDS, *_LATER_FIELDS))

    async def _either(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Return what is answered, at the second try to what an older version knows as well."""
        try:
            return await ask()
        except Refused as refused:
            if self._is_old or refused.status != HTTPStatus.UNPROCESSABLE_ENTITY:
                raise
            self._is_old = True
            try:
                answered = await ask()
            except Refused:
                self._is_old = False
                raise refused from None
        words = "this version of the API does not tell when an offense was changed by hand"
        self._log.warning(words, lacks=PERSISTED)
        return answered


def _build_time_filter(field: str, window: Window) -> str:
    start, end = to_milliseconds(window.start), to_milliseconds(window.end)
    return f"{field} >= {start} and {field} < {end}"


def get_creation_field(record: dict[str, Any]) -> str:
    """Return which field tells when an offense was made."""
    return FIRST_PERSISTED if record.get(FIRST_PERSISTED) else STARTED

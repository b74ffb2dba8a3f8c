"""Permission check of a QRadar authorized service."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from http import HTTPStatus

from tocsin import Refused, Window
from tocsin_connectors.siem.permissions import PermissionProbe, find_refused
from tocsin_connectors.siem.qradar import aql
from tocsin_connectors.siem.qradar.client import (
    OFFENSES,
    PERSISTED,
    OffenseClient,
    OffenseCursor,
    QRadarClient,
    is_earlier,
)
from tocsin_connectors.siem.qradar.search import ArielSearcher
from tocsin_connectors.siem.qradar.settings import QRadarSettings
from tocsin_connectors.siem.records import text

READ = "Offenses"
RULES = "View Custom Rules"
SEARCH = "Log Activity"
WRITE = f"{READ}, for notes"
PERMISSIONS = (
    f"{READ} (also for notes, if write_back is on)",
    f"{RULES} (for rule names)",
    f"{SEARCH} (unless search_events is off)",
)
_MISSING_OFFENSE = 0
_RECENT = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class QRadarPermissionCheck:
    """Permissions of an authorized service token, found with test requests."""

    console: QRadarClient
    offenses: OffenseClient
    searcher: ArielSearcher
    settings: QRadarSettings

    async def problems(self, now: datetime) -> Sequence[str]:
        """Return the problems that an operator has to fix. Changes nothing.

        Raises errors other than a refusal.
        """
        if unknown := await self._check_version():
            return [unknown]
        probes: dict[str, PermissionProbe] = {
            READ: partial(self.offenses.after_id, OffenseCursor(), 1),
            RULES: partial(self.console.part, "/analytics/rules", 0, 1, fields="id,name"),
        }
        if self.settings.search_events:
            query = aql.build_empty_query(Window(now - _RECENT, now), self.settings.properties)
            probes[SEARCH] = partial(self.searcher.run, query)
        if self.settings.write_back:
            probes[WRITE] = self._write_nothing
        missing = await find_refused(probes)
        return [f"the authorized service's user role lacks {name}" for name in missing]

    @property
    def detail(self) -> str:
        """Result of the check: what can be read, and the limits of the API version."""
        detail = f"Tocsin can read offenses from {self.settings.url}"
        wanted, used = self.settings.api_version, self.console.version
        if used != wanted:
            detail = (
                f"{detail}; the console does not support version {wanted}, so Tocsin uses {used}"
            )
        if self.offenses.clock == PERSISTED:
            return detail
        return f"{detail}; API version {used} does not return {PERSISTED}"

    async def _check_version(self) -> str | None:
        """Return the problem with the configured API version, if any."""
        try:
            versions = await self.console.versions()
        except Refused as error:
            if error.status == HTTPStatus.UNAUTHORIZED:
                raise
            return None
        supported = (
            text(version, "version") for version in versions if version.get("removed") is not True
        )
        known = [version for version in supported if version]
        wanted = self.settings.api_version
        if not known or wanted in known or any(is_earlier(name, wanted) for name in known):
            return None  # an earlier version is used instead
        message = f"the console does not support version {wanted} of the API"
        return f"{message}: set api_version to one of {', '.join(known)}"

    async def _write_nothing(self) -> None:
        """Write a note to a nonexistent offense, which only tests the permission."""
        try:
            path = f"{OFFENSES}/{_MISSING_OFFENSE}/notes"
            await self.console.request("POST", path, note_text="tocsin check")
        except Refused as error:
            if error.status not in (HTTPStatus.NOT_FOUND, HTTPStatus.UNPROCESSABLE_ENTITY):
                raise

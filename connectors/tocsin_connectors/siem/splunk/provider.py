"""Splunk Enterprise Security provider."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from tocsin import (
    Api,
    Broken,
    Entity,
    Grant,
    Health,
    Incident,
    IncidentStatus,
    Json,
    Listing,
    Refused,
    SiemEvent,
    Tools,
    Window,
    WindowedProvider,
)
from tocsin_connectors.siem.records import contains_entity
from tocsin_connectors.siem.retirements import load_retirements
from tocsin_connectors.siem.splunk import investigations, settings, spl
from tocsin_connectors.siem.splunk.contract import CONTRACTS
from tocsin_connectors.siem.splunk.events import build_event
from tocsin_connectors.siem.splunk.investigations import InvestigationClient
from tocsin_connectors.siem.splunk.jobs import ResultCursor, SearchJobs, SplunkRecord
from tocsin_connectors.siem.splunk.mapping import (
    ENTITY_FIELDS,
    build_incident,
    first_text,
    parse_id_time,
    select_stable,
)
from tocsin_connectors.siem.splunk.permissions import find_permission_problems
from tocsin_connectors.siem.splunk.write_back import SplunkWriteBack

NEW, REVIEWED, INVESTIGATED = "new", "reviewed", "investigations"
_BEFORE = timedelta(seconds=1)  # the time of a finding is slightly before the one in its ID


class SplunkProviderSettings(settings.SplunkSettings):
    """Settings of a Splunk provider."""


class Splunk(WindowedProvider[SplunkProviderSettings]):
    """Reads Splunk Enterprise Security findings from a search head."""

    record_contracts = CONTRACTS
    retirements = load_retirements("splunk")
    event_kinds = frozenset(ENTITY_FIELDS)
    permissions = (
        "the `search` capability and access to the `notable` index",
        (
            "read access to the lookup incident_review_lookup and the macro notable "
            "(which the roles ess_user and ess_analyst have)"
        ),
        (
            "the `edit_notable_events` capability and the ess_analyst role (if "
            "write_back or close_from_tickets is on)"
        ),
    )

    def __init__(self, settings: Any, tools: Tools) -> None:
        """Store the dependencies. Performs no I/O."""
        super().__init__(settings, tools)
        self._api = Api(tools, settings, sign_in=self._sign_in)
        most, patience = settings.most_searches, settings.search_timeout
        self._jobs = SearchJobs(self._api, tools.clock, most, patience)
        self._writer = SplunkWriteBack(self._api, self._jobs)
        self._investigations = InvestigationClient(self._api, settings.investigations_for)

    async def check(self) -> Health:
        """Return the owner of the token, and the missing permissions."""
        needed = ["search", *(["edit_notable_events"] if self.settings.writes else [])]
        now = self.tools.clock.now()
        username, problems = await find_permission_problems(self._api, self._jobs, needed, now)
        return Health(detail=f"{username} can search findings and their reviews", problems=problems)

    def streams(self) -> Sequence[str]:
        """Return the streams: indexed findings, reviews, and investigations if they are read."""
        return (NEW, REVIEWED, *([INVESTIGATED] if self.settings.investigations else []))

    async def list_changes(self, stream: str, window: Window, token: Any, limit: int) -> Listing:
        """Return a page of the findings that were indexed or reviewed in the window.

        Or of the investigations that changed in it.
        """
        if stream == INVESTIGATED:
            found = await self._investigations.changed(window, token or 0, limit)
            return Listing(
                records=found.records, next_token=found.following, server_time=found.server_time
            )
        if token is None:
            cursor = await self._jobs.run(self._search(stream, window))
        else:
            cursor = ResultCursor.decode(token)
        rows: Sequence[SplunkRecord] = ()
        if not cursor.is_end:
            rows, cursor = await self._jobs.page(cursor, limit)
        if stream == REVIEWED and rows:
            rows = await self._reviewed(rows)
        if cursor.is_end:
            await self._jobs.clear(cursor.sid)
        following = None if cursor.is_end else cursor.encode()
        return Listing(records=rows, next_token=following, server_time=cursor.server_time)

    def to_incident(self, record: Mapping[str, Any]) -> Incident:
        """Return the incident of a finding or an investigation.

        Raises ValueError if it has no ID or no time.
        """
        if "investigation_guid" in record:
            return investigations.build_incident(record, self.settings.web_url)
        return build_incident(dict(record), self.settings.web_url)

    def record_version(self, record: Mapping[str, Any]) -> Json:
        """Return the fields of a finding that differ only if it changes."""
        return select_stable(dict(record))

    async def incident(self, external_id: str) -> Incident | None:
        """Return the current finding or investigation, or None if there is none.

        Findings are searched within `look_back`.
        """
        records: Sequence[Mapping[str, Any]]
        if external_id.startswith(investigations.PREFIX):
            name = external_id.removeprefix(investigations.PREFIX)
            found = await self._investigations.one(name)
            records = [] if found is None else [found]
        else:
            records = await self._findings([external_id])
        for record in records:
            try:
                return self.to_incident(record)
            except ValueError as error:
                raise Broken(
                    f"the response for {external_id} is not a valid finding: {error}"
                ) from None
        return None

    async def events(
        self, entity: Entity, window: Window, limit: int
    ) -> AsyncGenerator[SiemEvent, None]:
        """Yield the latest events of a window that name the entity in a field of its kind."""
        if entity.kind not in ENTITY_FIELDS or not entity.value:
            return
        indexes = self.settings.event_indexes
        search = spl.build_events_search(
            entity.value, ENTITY_FIELDS[entity.kind], indexes, window, limit
        )
        for record in await self._jobs.all(search):
            with suppress(ValueError):  # skip invalid events
                event = build_event(record)
                if contains_entity(entity, event.entities) and event.occurred_at in window:
                    yield event

    async def comment(self, external_id: str, text: str, key: str) -> None:
        """Write a comment to a finding, unless one with this key exists.

        Raises `Refused` if the finding does not exist.
        """
        await self._expect(external_id)
        await self._writer.comment(external_id, text, key)

    async def set_status(self, external_id: str, status: IncidentStatus) -> None:
        """Set the status of a finding, unless it has that status already."""
        if (await self._expect(external_id)).status is not status:
            await self._writer.set_status(external_id, status)

    async def _expect(self, external_id: str) -> Incident:
        found = await self.incident(external_id)
        if found is None:
            raise Refused(f"the finding {external_id} does not exist")
        return found

    def _search(self, stream: str, window: Window) -> spl.SplSearch:
        if stream == REVIEWED:
            return spl.build_reviewed_search(window)
        return spl.build_indexed_search(window, self.settings.look_back)

    async def _reviewed(self, reviews: Sequence[SplunkRecord]) -> Sequence[SplunkRecord]:
        """Return the reviewed findings with their review times.

        Reviews without a finding are returned unchanged, to be rejected.
        """
        when = {
            name: review.get(spl.REVIEWED)
            for review in reviews
            if (name := first_text(review, "rule_id"))
        }
        found = await self._findings(list(when))
        known = {first_text(finding, "event_id") for finding in found}
        lost = [review for review in reviews if first_text(review, "rule_id") not in known]
        return [
            {**finding, spl.REVIEWED: when.get(first_text(finding, "event_id") or "")}
            for finding in found
        ] + lost

    async def _findings(self, identifiers: Sequence[str]) -> Sequence[SplunkRecord]:
        if not identifiers:
            return ()
        search = spl.build_findings_search(identifiers, self._earliest(identifiers))
        return await self._jobs.all(search)

    def _earliest(self, identifiers: Sequence[str]) -> datetime:
        """Return the earliest possible time of these findings."""
        times = [moment for identifier in identifiers if (moment := parse_id_time(identifier))]
        if len(times) == len(identifiers):
            return min(times) - _BEFORE
        look_back: timedelta = self.settings.look_back
        return self.tools.clock.now() - look_back

    async def _sign_in(self) -> Grant:
        return Grant(f"Bearer {self.settings.token.get_secret_value()}")

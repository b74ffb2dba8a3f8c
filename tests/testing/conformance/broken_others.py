"""Providers with broken coverage, capabilities and rate limits."""

from __future__ import annotations

import asyncio
import time
import urllib.request
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

from broken import Incidents, Lists, Pages, breaks, is_past
from tocsin_example.provider import ExampleProvider

from tocsin import Broken, Covered, Refused, TryLater, Window

BLOCK = 0.3
DOOMSDAY = datetime(2030, 1, 1, tzinfo=UTC)


# what is covered, and clocks


@breaks("test_coverage_has_no_gaps")
class LeavesOutASecond(Pages):
    def changed_page(self, page):
        later = (
            replace(interval, start=interval.start + timedelta(seconds=1))
            for interval in page.covered
        )
        return replace(
            page,
            covered=tuple(
                interval for interval in later if interval.start <= interval.end or interval.lost
            ),
        )


@breaks("test_only_what_was_read_is_covered")
class CoversTheWindowAtOnce(Pages):
    def changed_page(self, page):
        position = page.next_position
        if position["window"] is None:
            return page
        start, end = map(datetime.fromisoformat, (position["watermark"], position["window"][1]))
        return replace(page, covered=(Covered(source="changed", start=start, end=end),))


@breaks("test_the_future_is_not_covered")
class CoversTheNextHour(Pages):
    def changed_page(self, page):
        recently = self.tools.clock.now() - timedelta(minutes=5)
        hour = timedelta(hours=1)
        later = (
            replace(interval, end=interval.end + hour)
            for interval in page.covered
            if interval.end > recently
        )
        return replace(page, covered=(*page.covered, *later))


@breaks("test_a_siem_whose_clock_is_ahead_is_read")
class TrustsItsOwnClock(Lists):
    async def listed(self, ask, window, token):
        return replace(await ask(), server_time=None)


@breaks("test_a_siem_whose_clock_is_behind_is_read")
class ExpectsTheSameClock(Lists):
    async def listed(self, ask, window, token):
        listing = await ask()
        if listing.server_time < self.tools.clock.now() - timedelta(minutes=2):
            raise Broken("the SIEM's clock is behind")
        return listing


@breaks("test_time_comes_from_the_clock")
class KnowsOnlyThisDecade(ExampleProvider):
    async def read(self, stream, position, until):
        async for page in super().read(stream, position, min(until, DOOMSDAY)):
            yield page


# what it can do beside


@breaks("test_an_incident_is_refreshed")
class RemembersTheTitle(Incidents):
    def __init__(self, settings, tools):
        super().__init__(settings, tools)
        self._titles = {}

    def make(self, incident, record):
        self._titles.setdefault(incident.external_id, incident.title)
        return incident

    async def incident(self, external_id):
        found = await super().incident(external_id)
        return found and replace(found, title=self._titles.get(external_id, found.title))


@breaks("test_late_entities_are_refreshed")
class RefreshesNoEntities(ExampleProvider):
    async def incident(self, external_id):
        found = await super().incident(external_id)
        return found and replace(found, entities=())


@breaks("test_any_id_is_refreshed")
class KeepsSlashesInAPath(ExampleProvider):
    async def incident(self, external_id):
        try:
            answer = await self._api.get(f"/api/v1/cases/{quote(external_id)}")
        except Refused:
            return None
        return self.to_incident(answer.json)


@breaks("test_refused_details_lose_no_incident")
class WaitsForDetails(ExampleProvider):
    async def complete(self, incident, record):
        try:
            await self._api.get(f"/api/v1/cases/{quote(incident.external_id, safe='')}")
        except Refused as refused:
            raise TryLater(str(refused)) from None
        return incident


@breaks("test_a_deleted_incident_is_none", "test_a_status_of_an_unknown_incident_is_refused")
class MissesWhatIsGone(ExampleProvider):
    async def incident(self, external_id):
        found = await super().incident(external_id)
        if found is None:
            raise Broken("there is no such incident")
        return found


@breaks("test_a_backfill_returns_its_window")
class FillsTooMuch(ExampleProvider):
    async def backfill(self, stream, position, window):
        more = timedelta(hours=3 if is_past(self, window) else 0)
        wider = Window(window.start, window.end + more)
        async for page in super().backfill(stream, position, wider):
            yield page


# manners


@breaks("test_an_idle_read_makes_few_requests")
class AsksAgainWhereNothingIsNew(Lists):
    async def listed(self, ask, window, token):
        listing = await ask()
        is_short = window.end - window.start < timedelta(minutes=15)
        if is_short and len(listing.records) == 3 and listing.next_token is token is None:
            for _ in range(15):
                await ask()
        return listing


@breaks("test_requests_are_in_proportion")
class AsksForEachAgainAndAgain(Lists):
    async def listed(self, ask, window, token):
        listing = await ask()
        if len(listing.records) == 30:
            for _ in range(5 * 30):
                await self.incident("1001")
        return listing


@breaks("test_only_the_guarded_client_is_used")
class HasAWayOfItsOwn(ExampleProvider):
    async def check(self):
        health = await super().check()
        with suppress(OSError):
            await asyncio.to_thread(urllib.request.urlopen, self.settings.url, timeout=5)
        return health


@breaks("test_a_read_can_be_cancelled")
class EndsWhenCancelled(Lists):
    async def listed(self, ask, window, token):
        try:
            return await ask()
        except asyncio.CancelledError:
            raise Broken("interrupted") from None


@breaks("test_an_abandoned_read_leaves_no_task")
class GoesOnByItself(ExampleProvider):
    async def read(self, stream, position, until):
        pages = super().read(stream, position, until)
        try:
            async for page in pages:
                yield page
        except GeneratorExit:
            self._going_on = asyncio.create_task(asyncio.sleep(3600))
            raise
        finally:
            await pages.aclose()


# the event loop


@breaks(
    "test_the_event_loop_is_not_blocked",
    # which read before they check, too
    "test_no_secret_is_exposed",
    "test_only_the_guarded_client_is_used",
)
class BlocksAfterItHasRead(ExampleProvider):
    _has_read = False

    async def read(self, stream, position, until):
        async for page in super().read(stream, position, until):
            self._has_read = True
            yield page

    async def check(self):
        time.sleep(BLOCK if self._has_read else 0)  # noqa: ASYNC251
        return await super().check()


class BlocksForEachRecord(ExampleProvider):
    def to_incident(self, record):
        time.sleep(BLOCK)
        return super().to_incident(record)

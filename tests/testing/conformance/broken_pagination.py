"""Providers with broken pagination and positions."""

from __future__ import annotations

import json
from collections import defaultdict
from contextlib import aclosing, suppress
from dataclasses import replace
from datetime import timedelta

from broken import NOTHING, Answers, Incidents, Lists, Pages, breaks, is_past
from tocsin_example.provider import ExampleProvider

from tocsin import Broken, Page, Refused, TryLater, Window
from tocsin.providers.cursor import WindowCursor, decode_cursor, floor_to_second

A_MILLISECOND = timedelta(milliseconds=1)


# paging


@breaks("test_every_page_is_read")
class ReadsTwelvePages(Lists):
    _count = 0

    async def listed(self, ask, window, token):
        self._count = self._count + 1 if token else 1
        listing = await ask()
        return replace(listing, next_token=None) if self._count == 12 else listing


@breaks("test_a_short_page_is_not_the_last")
class StopsAtAShortPage(Lists):
    _length = 0

    async def listed(self, ask, window, token):
        listing = await ask()
        before, self._length = (self._length if token else 0), len(listing.records)
        return replace(listing, next_token=None) if self._length < before else listing


@breaks("test_a_page_without_valid_records_is_not_the_last")
class StopsWhereNothingCanBeRead(Lists):
    async def listed(self, ask, window, token):
        listing = await ask()
        readable = any(isinstance(record.get("id"), str) for record in listing.records)
        return listing if readable else replace(listing, next_token=None)


@breaks("test_equal_timestamps_may_span_pages")
class GoesOnBehindTheMoment(Lists):
    _moment = ""

    async def listed(self, ask, window, token):
        listing = await ask()
        left = [
            record
            for record in listing.records
            if not token or record["changed_at"] != self._moment
        ]
        if listing.records:
            self._moment = listing.records[-1]["changed_at"]
        return replace(listing, records=left)


@breaks("test_numbers_need_not_follow_time")
class GoesByNumbers(Incidents):
    _highest = 0

    def make(self, incident, record):
        number = int(incident.external_number or self._highest)
        self._highest = max(self._highest, number)
        return incident if number > self._highest - 400 else None


class Remembering(Incidents):
    """Remembers which incidents it has made."""

    def __init__(self, settings, tools):
        super().__init__(settings, tools)
        self.made = set()

    def is_known(self, incident):
        known = incident.external_id in self.made
        self.made.add(incident.external_id)
        return known


@breaks("test_changes_during_pagination_arrive", "test_an_unchanged_status_is_not_written")
class ReadsAListOnce(Remembering):
    def make(self, incident, record):
        age = (incident.changed_at - incident.occurred_at).total_seconds()
        return incident if self.is_known(incident) or not 30 < age < 300 else None


@breaks("test_moved_incidents_skip_no_others")
class PagesByOffset(Lists):
    """What of the earlier pages has left the window counts no more."""

    _ids = ()

    async def listed(self, ask, window, token):
        listing = await ask()
        if token is None:
            self._ids = []
        moved = 0
        for name in self._ids[:2]:
            found = await self.incident(name)
            moved += found is None or found.changed_at >= window.end
        names = (record.get("id") for record in listing.records)
        self._ids = [*self._ids, *(name for name in names if isinstance(name, str))]
        return replace(listing, records=listing.records[moved:])


@breaks("test_a_read_ends_despite_constant_changes")
class ReadsAsLongAsThereIsMore(ExampleProvider):
    async def read(self, stream, position, until):
        more = True
        while more:
            more = False
            async for page in super().read(stream, position, self.tools.clock.now()):
                yield page
                position, more = page.next_position, more or bool(page.covered)


@breaks("test_a_repeated_page_ends_the_read")
class TakesTheSamePageForTheLast(Lists):
    async def listed(self, ask, window, token):
        listing = await ask()
        again = token is not None and listing.next_token == token
        return replace(listing, next_token=None) if again else listing


@breaks("test_a_missing_page_token_is_not_the_end")
class TakesAMissingTokenForTheEnd(Answers):
    def take(self, response):
        if not response.body.startswith(b'{"cases"') or b"next_page_token" in response.body:
            return response
        with suppress(ValueError):
            content = {**json.loads(response.body), "next_page_token": None}
            return replace(response, body=json.dumps(content).encode())
        return response


class Forgiving(Lists):
    """Takes some refusals of a page token for the end of the list."""

    def __init__(self, settings, tools):
        super().__init__(settings, tools)
        self._own = set()

    def forgives(self, is_own):
        return False

    async def listed(self, ask, window, token):
        try:
            listing = await ask()
        except Refused:
            if token is None or not self.forgives(token in self._own):
                raise
            return NOTHING
        self._own.add(listing.next_token)
        return listing


@breaks("test_an_expired_page_token_loses_nothing")
class TakesAnExpiredTokenForTheEnd(Forgiving):
    def forgives(self, is_own):
        return not is_own


@breaks("test_a_restart_of_the_siem_loses_nothing")
class TakesAForgottenTokenForTheEnd(Forgiving):
    def forgives(self, is_own):
        return is_own


@breaks("test_an_error_on_a_later_page_holds_the_position")
class TakesALaterErrorForTheEnd(Lists):
    async def listed(self, ask, window, token):
        try:
            return await ask()
        except TryLater as error:
            if token is None or error.status != 503:
                raise
            return NOTHING


# positions


@breaks("test_a_position_survives_json")
class KeepsATuple(Pages):
    def given(self, position):
        return position and {name: value for name, value in position.items() if name != "place"}

    def changed_page(self, page):
        return replace(page, next_position={**page.next_position, "place": (1, 2)})


class Resumed(Lists):
    """Leaves out a record where it goes on within a list that another object began."""

    past = False
    _has_begun = False

    async def listed(self, ask, window, token):
        listing = await ask()
        resumed = token is not None and not self._has_begun
        self._has_begun = True
        skips = resumed and is_past(self, window) is self.past
        return replace(listing, records=listing.records[skips:])


@breaks("test_reading_may_stop_after_any_page")
class GoesOnTooFar(Resumed):
    past = False


@breaks("test_a_backfill_continues_after_any_page")
class FillsOnTooFar(Resumed):
    past = True


class Skipping(ExampleProvider):
    """Leaves out of its pages what is in `skipped`."""

    def skipped(self):
        return set()

    def note(self, page):
        pass

    async def read(self, stream, position, until):
        async for page in super().read(stream, position, until):
            left = [
                incident for incident in page.incidents if _version(incident) not in self.skipped()
            ]
            self.note(page)
            yield replace(page, incidents=tuple(left))


def _version(incident):
    return incident.external_id, incident.changed_at


@breaks("test_a_page_that_was_not_stored_is_read_again")
class AcknowledgesWhatItYields(Skipping):
    """As if the SIEM remembered what each process had fetched."""

    def skipped(self):
        fetched = vars(self.tools.clock).get("fetched", {})
        return set().union(*(ids for owner, ids in fetched.items() if owner is not self))

    def note(self, page):
        fetched = vars(self.tools.clock).setdefault("fetched", defaultdict(set))
        fetched[self].update(map(_version, page.incidents))


@breaks("test_two_reads_from_one_position_agree")
class RemembersWhatItYielded(Skipping):
    def __init__(self, settings, tools):
        super().__init__(settings, tools)
        self._yielded = set()

    def skipped(self):
        return self._yielded

    def note(self, page):
        self._yielded.update(map(_version, page.incidents))


@breaks("test_a_backfill_does_not_affect_reads")
class SkipsWhatWasFilled(Skipping):
    def __init__(self, settings, tools):
        super().__init__(settings, tools)
        self._filled = set()

    def skipped(self):
        return self._filled

    async def backfill(self, stream, position, window):
        async for page in super().backfill(stream, position, window):
            self._filled.update(map(_version, page.incidents))
            yield page


@breaks("test_an_empty_first_read_loses_nothing")
class HasNoPositionOfNothing(ExampleProvider):
    async def read(self, stream, position, until):
        async for page in super().read(stream, position, until):
            if (
                position is not None
                or page.incidents
                or any(interval.lost for interval in page.covered)
            ):
                yield page


@breaks("test_the_first_read_covers_first_fetch")
class BeginsTooEarly(ExampleProvider):
    async def read(self, stream, position, until):
        if position is None:
            start = until - self.settings.first_fetch - timedelta(minutes=90)
            position = WindowCursor.exactly(start).encode()
            yield Page(next_position=position)
        async for page in super().read(stream, position, until):
            yield page


@breaks("test_later_reads_return_only_changes")
class BringsTheLastOneAgain(ExampleProvider):
    _last = ()

    async def read(self, stream, position, until):
        brought = False
        async for page in super().read(stream, position, until):
            brought = brought or page.incidents or position is None
            self._last = page.incidents[-1:] or self._last
            position = page.next_position
            yield page
        if self._last and not brought:
            yield Page(next_position=position, incidents=self._last)


@breaks("test_late_incidents_arrive")
class LooksBackTooLittle(ExampleProvider):
    async def read(self, stream, position, until):
        settings = self.settings
        reader = self._reader(stream)
        end = floor_to_second(until + reader.lead - settings.settle_delay)
        cursor = (
            decode_cursor(position)
            if position
            else WindowCursor.exactly(until - settings.first_fetch)
        )
        if position is None:
            yield Page(next_position=cursor.encode())
        reading = reader.pages(cursor, end, timedelta(minutes=3))
        async with aclosing(reading) as pages:
            async for page in pages:
                yield page


@breaks("test_late_incidents_with_equal_timestamps_arrive")
class GoesOnBehindTheLastOne(Remembering):
    """By the time of the last one that an earlier read made."""

    _latest = _before = None

    async def read(self, stream, position, until):
        self._before = self._latest
        async for page in super().read(stream, position, until):
            yield page

    def make(self, incident, record):
        changed_at = incident.changed_at
        self._latest = max(changed_at, self._latest or changed_at)
        same = self._before and abs(changed_at - self._before) < A_MILLISECOND
        return incident if self.is_known(incident) or not same else None


class AsksForWhatIsLater(Lists):
    """Leaves out what changed on the very second at which a window begins."""

    past = False

    async def listed(self, ask, window, token):
        later = Window(window.start + timedelta(microseconds=1), window.end)
        return await ask(window=later if is_past(self, window) is self.past else window)


@breaks("test_a_change_at_the_bound_of_a_window_is_read")
class ReadsWhatIsLater(AsksForWhatIsLater):
    past = False


@breaks("test_a_backfill_includes_its_first_second")
class FillsWhatIsLater(AsksForWhatIsLater):
    past = True


@breaks("test_an_old_incident_that_changes_arrives")
class GoesByTheBeginning(Incidents):
    def make(self, incident, record):
        age = self.tools.clock.now() - incident.occurred_at
        return incident if age < timedelta(days=7) else None


@breaks("test_a_larger_overlap_brings_nothing_new")
class KnowsOnlyItsOwnOverlap(Pages):
    def given(self, position):
        overlap = self.settings.overlap.total_seconds()
        if position and position["overlap"] != overlap:
            raise Refused("the stored position is of other settings")
        return position and {name: value for name, value in position.items() if name != "overlap"}

    def changed_page(self, page):
        overlap = self.settings.overlap.total_seconds()
        return replace(page, next_position={**page.next_position, "overlap": overlap})


class TwoStreams(Lists):
    """Has the cases with even and with odd numbers apart."""

    def streams(self):
        return ("even", "odd")

    async def list_changes(self, stream, window, token, limit):
        listing = await super().list_changes(stream, window, token, limit)
        odd = stream == "odd"
        left = [record for record in listing.records if _is_odd(record) is odd]
        return replace(listing, records=left)


def _is_odd(record):
    number = record.get("number")
    return isinstance(number, int) and number % 2 == 1


@breaks("test_each_stream_has_its_own_position")
class SharesOnePosition(TwoStreams):
    """Begins a stream where another one has come to, if that was a while ago."""

    _came_to = None

    async def read(self, stream, position, until):
        if position is None and self._came_to and until - self._came_to > timedelta(minutes=30):
            position = WindowCursor.exactly(self._came_to).encode()
        async for page in super().read(stream, position, until):
            yield page
        self._came_to = until


@breaks("test_a_poison_record_does_not_stop_the_feed")
class WaitsForAPoisonedPage(Lists):
    async def listed(self, ask, window, token):
        try:
            return await ask()
        except Broken as error:
            if "cannot be rendered" in str(error):
                raise TryLater(str(error)) from None
            raise

"""Providers with broken event searches, comments and status changes."""

from __future__ import annotations

import html
from contextlib import suppress
from dataclasses import replace
from urllib.parse import quote

from broken import breaks
from tocsin_example.cases import WRITTEN
from tocsin_example.provider import ExampleProvider

from tocsin import (
    Broken,
    Entity,
    EntityKind,
    IncidentStatus,
    PluginFailure,
    Refused,
    TryLater,
    Window,
)


class Asked(ExampleProvider):
    """Answers otherwise: override `answered`, which begins with `self.ask`."""

    async def ask(self, entity, window, limit):
        return [event async for event in super().events(entity, window, limit)]

    async def first_page(self, entity, window, limit):
        answer = await self._api.get(
            "/api/v1/log",
            entity_type="ip",
            entity_value=entity.value,
            logged_from=window.start.isoformat(),
            logged_to=window.end.isoformat(),
            limit=limit,
        )
        return (answer.json or {}).get("entries", [])

    async def answered(self, entity, window, limit):
        return await self.ask(entity, window, limit)

    async def events(self, entity, window, limit):
        for event in await self.answered(entity, window, limit):
            yield event


class KnowsAddresses(Asked):
    """Breaks no rule: it says that it can be asked for nothing else."""

    event_kinds = frozenset({EntityKind.IP})

    async def answered(self, entity, window, limit):
        if entity.kind not in self.event_kinds:
            raise Broken(f"asked for a {entity.kind}")
        return await self.ask(entity, window, limit)


class KnowsUsers(KnowsAddresses):
    """Breaks no rule either: those of addresses are not for it."""

    event_kinds = frozenset({EntityKind.USER})


@breaks("test_events_of_an_entity_are_found")
class DoesNotSayOfWhom(Asked):
    async def answered(self, entity, window, limit):
        return [replace(event, entities=()) for event in await self.ask(entity, window, limit)]


@breaks("test_events_of_others_are_left_out")
class FindsWhatBeginsAlike(Asked):
    async def answered(self, entity, window, limit):
        alike = Entity(entity.kind, f"{entity.value}0")
        found = await self.ask(entity, window, limit)
        return [*found, *await self.ask(alike, window, limit - len(found))]


@breaks("test_events_outside_the_window_are_left_out")
class LeavesOutTheFirst(Asked):
    async def answered(self, entity, window, limit):
        found = await self.ask(entity, window, limit)
        return [event for event in found if event.occurred_at != window.start]


@breaks("test_the_latest_events_are_returned_up_to_the_limit")
class KeepsTheEarliest(Asked):
    async def answered(self, entity, window, limit):
        return (await self.ask(entity, window, 1_000))[-limit:]


@breaks("test_an_entity_is_not_a_query")
class TakesStars(Asked):
    async def answered(self, entity, window, limit):
        value = "198.51.100.9" if entity.value.endswith("*") else entity.value
        return await self.ask(replace(entity, value=value), window, limit)


@breaks("test_an_event_summary_is_one_line")
class QuotesTheText(Asked):
    async def answered(self, entity, window, limit):
        found = await self.ask(entity, window, limit)
        return [replace(event, summary=event.fields["text"] or event.summary) for event in found]


@breaks("test_a_malformed_event_is_skipped")
class GivesUpOnNonsense(Asked):
    async def answered(self, entity, window, limit):
        if any(
            isinstance(entry["id"], dict) for entry in await self.first_page(entity, window, limit)
        ):
            raise Broken("an entry cannot be understood")
        return await self.ask(entity, window, limit)


@breaks("test_event_searches_do_not_affect_reads")
class SkipsWhatItWasAsked(Asked):
    """Reads on from where it was asked for events, and not from its position."""

    async def answered(self, entity, window, limit):
        self._asked_at = self.tools.clock.now()
        return await self.ask(entity, window, limit)

    async def list_changes(self, stream, window, token, limit):
        start = max(window.start, min(vars(self).get("_asked_at", window.start), window.end))
        return await super().list_changes(stream, Window(start, window.end), token, limit)


@breaks("test_events_are_read_page_by_page")
class ReadsOnePage(Asked):
    async def answered(self, entity, window, limit):
        found = await self.ask(entity, window, limit)
        return found[: len(await self.first_page(entity, window, limit))]


class Silent(Asked):
    """Takes a failure for the absence of events, where `hides` is true of it."""

    def hides(self, error):
        return False

    async def answered(self, entity, window, limit):
        try:
            return await self.ask(entity, window, limit)
        except PluginFailure as error:
            if not self.hides(error):
                raise
            return []


@breaks("test_a_failure_is_not_an_empty_result")
class TakesErrorsForNothing(Silent):
    def hides(self, error):
        return isinstance(error, Broken)


@breaks("test_an_unreachable_siem_fails_event_searches")
class TakesAbsenceForNothing(Silent):
    def hides(self, error):
        return isinstance(error, TryLater) and "cannot connect" in str(error)


# comments


@breaks("test_a_comment_is_written_to_its_incident")
class WritesToTheNextAsWell(ExampleProvider):
    async def comment(self, external_id, text, key):
        await super().comment(external_id, text, key)
        with suppress(PluginFailure, ValueError):
            await super().comment(str(int(external_id) + 1), text, f"{key}+")


@breaks("test_a_comment_stays_plain_text")
class WritesMarkup(ExampleProvider):
    async def comment(self, external_id, text, key):
        await super().comment(external_id, html.escape(text), key)


@breaks("test_a_key_is_written_once")
class RemembersItsKeys(ExampleProvider):
    """In this process, and so long as the text is the same."""

    _written = frozenset[str]()

    async def comment(self, external_id, text, key):
        if (external_id, key) not in self._written:
            process = f"{key} {id(self)}"
            await super().comment(external_id, text, process)
            self._written |= {(external_id, key)}


@breaks("test_another_key_is_another_comment")
class KnowsKeysByTheirBeginning(ExampleProvider):
    async def comment(self, external_id, text, key):
        await super().comment(external_id, text, key.rstrip("01"))


@breaks("test_a_comment_is_written_once_after_a_lost_response")
class WritesFirst(ExampleProvider):
    """And only then what it has written."""

    async def comment(self, external_id, text, key):
        path = f"/api/v1/cases/{quote(external_id, safe='')}/comments"
        known = (await self._api.get(path)).json
        if known is None or "comments" not in known:
            raise Broken("no list of comments")
        if not any(comment["text"].startswith(f"{key}\n") for comment in known["comments"]):
            try:
                await self._api.request("POST", path, json={"text": f"{key}\n{text}"})
            except TryLater:
                await self._api.request("POST", path, json={"text": f"{key}\n{text}"})


@breaks("test_a_comment_to_an_unknown_incident_is_refused")
class WaitsForTheIncident(ExampleProvider):
    async def comment(self, external_id, text, key):
        try:
            await super().comment(external_id, text, key)
        except Refused as refused:
            if refused.status == 404:
                raise TryLater(str(refused)) from None
            raise


@breaks("test_a_comment_reaches_any_id")
class PutsIdsIntoPathsAsTheyAre(ExampleProvider):
    async def comment(self, external_id, text, key):
        if "/" in external_id:
            await self._api.get(f"/api/v1/cases/{quote(external_id)}")
        await super().comment(external_id, text, key)


@breaks("test_a_failed_comment_raises")
class PassesOverErrors(ExampleProvider):
    async def comment(self, external_id, text, key):
        with suppress(Broken):
            await super().comment(external_id, text, key)


# where an incident stands


@breaks("test_incidents_are_closed")
class NeverCloses(ExampleProvider):
    async def set_status(self, external_id, status):
        if status is not IncidentStatus.CLOSED:
            await super().set_status(external_id, status)


@breaks("test_a_status_is_set", "test_incidents_are_closed")
class TakesUpTheNextAsWell(ExampleProvider):
    async def set_status(self, external_id, status):
        await super().set_status(external_id, status)
        with suppress(PluginFailure, ValueError):
            await super().set_status(str(int(external_id) + 1), status)


@breaks("test_an_unchanged_status_is_not_written")
class SetsItAgain(ExampleProvider):
    async def set_status(self, external_id, status):
        await super().set_status(external_id, status)
        path = f"/api/v1/cases/{quote(external_id, safe='')}"
        await self._api.request("PATCH", path, json={"status": WRITTEN[status]})


@breaks("test_a_status_of_an_unknown_incident_is_refused")
class TakesItForSet(ExampleProvider):
    async def set_status(self, external_id, status):
        with suppress(Refused):
            await super().set_status(external_id, status)

"""Behavior specific to QRadar: three clocks, names by ID, API versions, write-back."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from unittest.mock import patch
from urllib.parse import quote_plus, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin import (
    CredentialsRefused,
    IncidentStatus,
    Misconfigured,
    Refused,
    Severity,
    TryLater,
    Window,
)
from tocsin.testing import Fault, Siem, open_provider
from tocsin_connectors.siem.qradar import QRadar
from tocsin_connectors.siem.qradar.write_back import MAX_NOTE_LENGTH, split_note

from .simulator import RULE, SETTINGS, TOKEN, QRadarSimulator, offense_id
from .streams import Reading, asked

# what every request has


async def test_token_is_in_header_not_url(console, opened, put):
    put()
    async with opened() as provider:
        await provider.check()
        await Reading(provider)()
    assert all(request.headers["SEC"] == TOKEN for request in console.requests)
    assert not any(
        TOKEN in str(request.query) or TOKEN in request.path for request in console.requests
    )


async def test_requests_have_the_version_header(console, opened):
    async with opened(api_version="27.0") as provider:
        await provider.check()
    told = {request.path: request.headers.get("Version") for request in console.requests}
    assert told.pop("/api/help/versions") is None
    assert set(told.values()) == {"27.0"}


async def test_offenses_are_requested_by_range_and_fields(console, opened):
    async with opened() as provider:
        await Reading(provider)()
    for request in asked(console):
        assert request.headers["Range"] in ("items=0-0", "items=0-49")
        assert "id" in request.query["fields"].split(",")


# check


@pytest.mark.parametrize(
    "lacking", ["Offenses", "View Custom Rules", "Log Activity", "Offenses, for notes"]
)
async def test_missing_permission_is_reported(console, opened, lacking):
    console.lacks = {lacking}
    async with opened(write_back=True) as provider:
        health = await provider.check()
    assert health.problems == (f"the authorized service's user role lacks {lacking}",)


async def test_check_writes_nothing_and_deletes_its_search(console, opened, put):
    case = put()
    async with opened(write_back=True) as provider:
        health = await provider.check()
    assert (health.problems, console.searches, console.changes) == ((), {}, [])
    assert console.siem.comments(case.id) == []


async def test_read_only_needs_no_search_or_write_permission(console, opened):
    console.lacks = {"Log Activity", "Offenses, for notes"}
    async with opened(search_events=False) as provider:
        assert (await provider.check()).problems == ()


async def test_unsupported_api_version_is_reported_with_supported_ones(opened):
    async with opened(api_version="17.0") as provider:
        [problem] = (await provider.check()).problems
    assert problem.endswith("version 17.0 of the API: set api_version to one of 26.0, 27.0")


async def test_older_console_is_read_with_a_version_that_it_has(console, opened, put):
    console.versions = [{"version": name, "removed": False} for name in ("24.0", "25.0", "27.0")]
    name = str(offense_id(put()))
    async with opened() as provider:
        health = await provider.check()
        found = await provider.incident(name)
    assert health.problems == ()
    assert "does not support version 26.0, so Tocsin uses 25.0" in health.detail
    assert found is not None
    told = {request.headers.get("Version") for request in console.requests[-2:]}
    assert told == {"25.0"}


async def test_check_reports_missing_property(opened):
    async with opened(event_properties={"url": ["URL"]}) as provider:
        assert (await provider.check()).problems == ()
    async with opened(event_properties={"url": ["URL", "No Such"]}) as provider:
        with pytest.raises(Refused, match="'No Such' does not exist"):
            await provider.check()


async def test_wrong_token_is_credentials_refused(opened):
    async with opened(token="another") as provider:
        with pytest.raises(CredentialsRefused, match="401"):
            await provider.check()


# three clocks


async def test_first_read_uses_time_and_then_ids(opened, put, clock):
    put()
    async with opened() as provider:
        read = Reading(provider)
        assert await read("new") == []
        assert [item.external_id for item in await read("changed")] == ["1"]
        now = clock.now()
        put(created_at=now, changed_at=now)
        clock.advance(minutes=1)
        assert [incident.external_id for incident in await read("new")] == ["2"]


async def test_new_offense_is_read_by_id_despite_old_times(opened, put, clock):
    async with opened() as provider:
        read = Reading(provider)
        await read()
        clock.advance(minutes=1)
        long_ago = clock.now() - timedelta(days=9)
        put(created_at=long_ago, changed_at=long_ago)
        assert [incident.external_id for incident in await read()] == ["1"]


async def test_gaps_between_ids_do_not_block(opened, put, clock):
    async with opened() as provider:
        read = Reading(provider)
        await read()
        for number in (7, 4_000, 9_000_000):
            put(id=str(number), number=number)
        clock.advance(minutes=1)
        assert [incident.external_id for incident in await read("new")] == ["7", "4000", "9000000"]


async def test_new_offense_waits_for_settle_delay(opened, put, clock):
    async with opened(settle_delay="30s") as provider:
        read = Reading(provider)
        await read()
        put(created_at=clock.now(), changed_at=clock.now())
        clock.advance(seconds=29)
        assert await read("new") == []
        clock.advance(seconds=3)
        assert len(await read("new")) == 1


async def test_more_new_offenses_than_a_page_arrive(console, opened, put, clock):
    console.most_per_page = 3
    async with opened() as provider:
        read = Reading(provider)
        await read()
        cases = [put() for _ in range(10)]
        clock.advance(minutes=1)
        assert [item.external_id for item in await read("new")] == [
            incident.id for incident in cases
        ]
        assert await read("new") == []


async def test_closing_without_update_is_read(console, opened, put, clock):
    case = put()
    async with opened() as provider:
        read = Reading(provider)
        await read()
        clock.advance(hours=1)
        await read()
        console.siem.put(replace(case, status=IncidentStatus.CLOSED, changed_at=clock.now()))
        clock.advance(minutes=1)
        assert await read("new", "changed") == []
        [closed] = await read("closed")
    assert closed.status is IncidentStatus.CLOSED
    assert "Closed by: admin\nClosed as: Mended" in closed.description


async def test_changes_are_listed_for_all_statuses(console, opened):
    async with opened() as provider:
        await Reading(provider)()
    assert not any("status" in request.query.get("filter", "") for request in asked(console))


async def test_offenses_failing_by_id_are_read_by_time(console, opened, put, clock):
    async with opened() as provider:
        read = Reading(provider)
        await read()
        poison, other = put(), put()
        console.siem.poisoned.add(poison.id)
        clock.advance(minutes=1)
        for _ in range(2):
            with pytest.raises(Exception, match="500"):
                await read("new")
        assert await read("new") == []
        [lost] = [interval for interval in read.covered if interval.lost]
        later = put()
        clock.advance(minutes=6)
        assert [item.external_id for item in await read("new")] == [later.id]
        console.siem.poisoned.clear()
        clock.advance(hours=1)
        filled = {incident.external_id async for incident in incidents_of(provider, lost)}
    assert {poison.id, other.id} & filled == {poison.id, other.id} & born_in(console, lost)


@pytest.mark.parametrize("made_late", [False, True])
async def test_past_offenses_are_read_by_creation_or_start(console, opened, put, clock, made_late):
    case, hour = put(), timedelta(hours=1)
    window = Window(case.created_at - timedelta(seconds=1), case.created_at + timedelta(seconds=2))
    times = console.times(case)
    moved = "start_time" if made_late else "first_persisted_time"
    console.times = lambda _: times | {moved: times[moved] - hour // timedelta(milliseconds=1)}
    async with opened() as provider:
        clock.advance(hours=2)
        assert {incident.external_id async for incident in incidents_of(provider, window)} == {
            case.id
        }


async def incidents_of(provider, lost):
    async for page in provider.backfill("new", None, lost):
        for incident in page.incidents:
            yield incident


def born_in(console, lost):
    return {incident.id for incident in console.siem.created(lost)}


async def test_position_of_another_version_stays_unchanged(opened):
    async with opened() as provider:
        with pytest.raises(Refused, match="cannot read the stored position"):
            await anext(provider.read("new", {"since": 7}, provider.tools.clock.now()))


# older versions of the API


async def test_older_version_is_read_by_time_of_last_event(console, opened, put, clock):
    console.is_old = True
    case = put()
    async with opened() as provider:
        read = Reading(provider)
        assert [incident.external_id for incident in await read()] == [case.id]
        put()
        clock.advance(minutes=1)
        assert {item.external_id for item in await read()} == {"2"}
        health = await provider.check()
    assert "does not return last_persisted_time" in health.detail
    refused = [
        request for request in asked(console) if "last_persisted_time" in request.query["fields"]
    ]
    assert len(refused) == 1


async def test_other_filter_errors_do_not_mean_an_older_version(console, opened):
    async with opened() as provider:
        known = patch.object(console, "known", return_value={"id"})
        with known, pytest.raises(Refused, match="422"):
            await Reading(provider)("changed")
        assert await Reading(provider)("changed") == []


@pytest.mark.parametrize("counts_parts", [False, True])
async def test_all_offenses_arrive_for_any_total(console, opened, put, counts_parts):
    console.counts_parts, console.most_per_page = counts_parts, 50
    names = {put().id for _ in range(120)}
    async with opened() as provider:
        assert {incident.external_id for incident in await Reading(provider)("changed")} == names


# which offenses


async def test_domain_filter(console, opened, put):
    domains = {"1": 0, "2": 3, "3": 7, "4": None}
    render = console.render
    told = lambda case: render(case) | {"domain_id": domains[case.id]}  # noqa: E731
    for _ in domains:
        put()
    with patch.object(console, "render", told):
        async with opened(domains=[3, 7]) as provider:
            found = {incident.external_id for incident in await Reading(provider)("changed")}
            [one] = [await provider.incident("2")]
    assert found == {"2", "3", "4"}
    assert "Domain: 3" in one.description


async def test_rule_filter(opened, put):
    put()
    async with opened(rules=[RULE, 5]) as one, opened(rules=[5]) as other:
        assert len(await Reading(one)("changed")) == 1
        assert await Reading(other)("changed") == []


async def test_two_consoles_are_read_concurrently(opened, put, clock):
    async with QRadarSimulator(Siem(clock)) as another:
        ours, theirs = put(title="ours"), another.siem.put(put(id="9", number=9, title="theirs"))
        given = {"url": another.url, **SETTINGS}
        async with opened() as one, open_provider(QRadar, clock=clock, **given) as two:
            found = [incident.external_id for incident in await Reading(one)("changed")]
            assert found == [ours.id, theirs.id]
            [other] = await Reading(two)("changed")
            assert (other.external_id, other.title) == ("9", "theirs")
            assert urlsplit(other.source_url).netloc == urlsplit(another.url).netloc
            assert await two.incident(ours.id) is None


async def test_invalid_id_sends_no_request(console, opened):
    async with opened() as provider:
        for name in ("", "x", "7/../8", "-1", "٣"):
            assert await provider.incident(name) is None
    assert console.requests == []


# writing


async def test_long_comment_is_split_and_written_once(console, opened, put):
    case, words = put(), "\n".join(f"{line}: Ärger mit 鐘 {'x' * 70}" for line in range(90))
    console.fail(Fault.LOST)
    async with opened() as provider:
        with pytest.raises(TryLater):
            await provider.comment(case.id, words, "k:1")
        for _ in range(2):
            await provider.comment(case.id, words, "k:1")
    notes = console.siem.comments(case.id)
    assert len(notes) > 2
    assert [note.rpartition("\n")[2] for note in notes] == [
        f"[tocsin k:1 {place}/{len(notes)}]" for place in range(1, len(notes) + 1)
    ]
    assert "\n".join(note.rpartition("\n\n")[0] for note in notes) == words


@given(st.text(max_size=200), st.integers(1, 90))
def test_note_parts_are_short_and_complete(words, times):
    given_words = words * times
    parts = list(split_note(given_words))
    assert all(len(quote_plus(part, errors="replace")) <= MAX_NOTE_LENGTH for part in parts)
    assert "".join(parts).replace("\n", "") == given_words.replace("\n", "")


async def test_offense_status_changes(console, opened, put):
    case = put(severity=Severity.LOW)
    async with opened(closing_reason_id=54) as provider:
        told = []
        for status in (IncidentStatus.ACTIVE, IncidentStatus.NEW, IncidentStatus.CLOSED):
            await provider.set_status(case.id, status)
            told.append((await provider.incident(case.id)).status)
        await provider.set_status(case.id, IncidentStatus.CLOSED)
        with pytest.raises(Refused, match="cannot be reopened"):
            await provider.set_status(case.id, IncidentStatus.ACTIVE)
    assert told == [IncidentStatus.ACTIVE, IncidentStatus.NEW, IncidentStatus.CLOSED]
    assert len(console.changes) == 3


async def test_follow_up_changes_nothing_else(console, opened, put):
    case = put()
    async with opened() as provider:
        await provider.set_status(case.id, IncidentStatus.ACTIVE)
    assert console.changes == [{"fields": "id", "follow_up": "true"}]


async def test_closing_without_reason_is_refused(console, opened, put):
    case = put()
    async with opened() as provider:
        with pytest.raises(Misconfigured, match="closing_reason_id"):
            await provider.set_status(case.id, IncidentStatus.CLOSED)
    assert console.changes == []


async def test_writes_to_missing_objects_are_refused(opened):
    async with opened() as provider:
        with pytest.raises(Refused, match="offense 7 does not exist"):
            await provider.comment("7", "text", "key")

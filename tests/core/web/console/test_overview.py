"""Whether everything is well, at a glance and while one looks."""

from __future__ import annotations

import asyncio
import re
from datetime import timedelta
from html import unescape

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import update

from api_callers import DESTINATIONS, GOOD_DESTINATION
from console import text_of
from delivery_rows import NOW, add_delivery, add_destination
from incident_rows import add_incidents
from schedule_harness import Office
from tocsin.model import Severity
from tocsin.store import DatabaseFault
from tocsin.store.tables import schedules
from tocsin.testing import ManualClock
from tocsin.web.console.coverage_bar import WIDTH, build_coverage_bars
from tocsin.web.console.live_updates import MAX_STREAMS
from tocsin.web.console.trend_chart import draw_trend

NOON = "2026-11-20T12:00:00Z"


class StandingClock(ManualClock):
    """Whoever sleeps on it waits until others have moved it."""

    def __init__(self) -> None:
        super().__init__()
        self._moved = asyncio.Event()

    def advance(self, **duration: float) -> None:
        """Move the clock, and wake whoever sleeps."""
        super().advance(**duration)
        self._moved.set()
        self._moved = asyncio.Event()

    async def sleep(self, duration: timedelta) -> None:
        """Return once the time has passed."""
        until = self.now() + duration
        while self.now() < until:
            await self._moved.wait()


@pytest.fixture
def clock() -> StandingClock:
    return StandingClock()


async def test_an_empty_service_says_what_is_missing(person):
    text = await person.text("/")
    for words in (
        "0 of 0 destinations healthy",
        "No destinations yet",
        "No undelivered events in the last 24 hours.",
    ):
        assert words in text


async def test_what_is_stopped_is_counted_and_named(person, admin):
    await admin.ask("POST", DESTINATIONS, 201, json=GOOD_DESTINATION)
    assert "1 of 1 destinations healthy" in await person.text("/")
    await admin.ask("PATCH", f"{DESTINATIONS}/soar", json={"enabled": False})
    text = await person.text("/")
    assert "0 of 1 destinations healthy" in text
    assert re.search(r"soar (paused|stopped|disabled)", text)


async def test_a_node_that_is_not_ready_says_so_on_the_overview(api, person):
    assert "not ready" not in await person.text("/")
    node = api.services.node
    node.stalled = ["routing", "claiming soar"]
    node.fault = DatabaseFault.FULL
    text = await person.text("/")
    for words in (
        "This node is not ready.",
        "Tocsin cannot store data: database disk full. To fix this, free up disk space.",
        "Stalled background loops: routing, claiming soar.",
    ):
        assert words in text


async def test_all_destinations_are_counted_however_many_there_are(api, person):
    def add(connection) -> None:
        for number in range(205):
            add_destination(connection, f"d{number}", "paused" if number == 204 else "active")

    await api.services.database.write(add)
    assert "204 of 205 destinations healthy" in await person.text("/")


async def test_all_disabled_schedules_are_counted_however_few_are_named(api, person):
    office = Office(api.services.database, api.services.clock)
    for number in range(21):
        await office.make(name=f"hunt-{number}")
    disabled = update(schedules).values(status="disabled")
    await api.services.database.write(lambda connection: connection.execute(disabled))
    assert "21 schedules disabled" in await person.text("/")


async def test_what_did_not_arrive_is_told_by_destination(api, person):
    for name in ("chat", "soar"):
        await api.services.database.write(add_destination, name)
        for _ in range(5):
            await api.services.database.write(add_delivery, to=name, at=NOW)
    html = await person.html("/")
    text = await person.text("/")
    assert "To chat 5 " in text
    assert "To soar 5 " in text
    assert 'href="/deliveries?destination=soar"' in html
    assert html.count('href="/deliveries/dlv_') == 6


async def test_a_viewer_sees_it_too_and_nothing_of_administration(viewer):
    html = await viewer.html("/")
    assert "Administration" not in html
    assert html.count("<form") == 2  # the search, and signing out


async def test_it_is_brought_up_to_date_while_one_looks(person, admin, clock):
    async with await person.get("/live/") as response:
        assert response.content_type == "text/event-stream"
        name, html = await next_event(response, clock)
        assert (name, "0 of 0 destinations" in _words(html)) == ("shown", True)
        await admin.ask("POST", DESTINATIONS, 201, json=GOOD_DESTINATION)
        name, html = await next_event(response, clock)
        assert (name, "1 of 1 destinations" in _words(html)) == ("shown", True)


async def test_whoever_has_signed_out_sees_no_more(person, clock):
    async with await person.get("/live/") as response:
        await next_event(response, clock)
        await person.submit("/", "/sign-out")
        assert await next_event(response, clock) == ("gone", "")
        assert await response.content.read() == b"\n"


async def test_nobody_follows_without_a_session(api):
    response = await api.client.get("/live/", allow_redirects=False)
    assert await response.text() == 'event: gone\ndata: ""\n\n'  # the page leads to the sign-in


async def test_so_many_pages_and_no_more_are_kept_up_to_date(person):
    responses = [await person.get("/live/") for _ in range(MAX_STREAMS)]
    last = await person.get("/live/")
    assert (last.status, last.headers["Retry-After"]) == (503, "30")
    for response in responses:
        response.close()


@pytest.mark.parametrize("path", ["/console/nothing.css", "/console/..%2Frendering.py"])
async def test_only_what_is_meant_to_be_loaded_is(api, path):
    assert (await api.client.get(path)).status == 404


async def test_a_style_sheet_is_kept_for_as_long_as_it_is_the_same(api, person):
    address = re.search(r'href="(/console/console.css\?v=\w+)"', await person.html("/"))[1]
    response = await api.client.get(address)
    assert "immutable" in response.headers["Cache-Control"]
    response = await api.client.get("/console/console.css?v=old")
    assert response.headers["Cache-Control"] == "no-cache"


def test_a_hole_is_where_it_was():
    proof = _proof(gaps=[("2026-11-20T06:00:00Z", "2026-11-20T09:00:00Z")])
    [strip] = build_coverage_bars(proof, [_provider(NOON)])
    assert not strip.is_whole
    [read, gap] = strip.pieces
    assert (read.begin, read.width) == (0, WIDTH)
    assert (gap.kind, gap.begin, gap.width) == ("gap", 750, 125)


@given(st.lists(st.tuples(*[st.datetimes(), st.timedeltas(timedelta(), timedelta(days=3))])))
def test_whatever_is_missing_lies_on_the_strip_and_can_be_seen(parts):
    moments = [(f"{begin.isoformat()}+00:00", begin, length) for begin, length in parts]
    gaps = []
    for text, begin, length in moments:
        try:
            gaps.append((text, f"{(begin + length).isoformat()}+00:00"))
        except OverflowError:
            continue
    [strip] = build_coverage_bars(_proof(gaps=gaps), [_provider(NOON)])
    assert len(strip.pieces) == len(gaps) + 1
    for piece in strip.pieces[1:]:
        assert 0 <= piece.begin <= WIDTH
        assert piece.width > 0


async def next_event(response, clock) -> tuple[str, str]:
    """Return the next event of a stream, as time passes."""
    reading = asyncio.ensure_future(_read_event(response))
    while not reading.done():
        await asyncio.wait([reading], timeout=0.01)
        clock.advance(seconds=1)
    return reading.result()


async def _read_event(response) -> tuple[str, str]:
    while (line := await response.content.readline()) in {b":\n", b"\n"}:
        pass
    data = await response.content.readline()
    return line.decode().removeprefix("event: ").strip(), orjson.loads(data.removeprefix(b"data: "))


def _words(html: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", html).split())


def _provider(covered_until: str) -> dict:
    return {"name": "edge", "streams": [{"name": "changed", "covered_until": covered_until}]}


def _proof(gaps=()) -> dict:
    where = {"provider": "edge", "stream": "changed"}
    return {
        "since": "2026-11-19T12:00:00Z",
        "until": NOON,
        "coverage": [where | {"from": "2026-11-18T00:00:00Z", "to": NOON}],
        "gaps": [where | {"from": begin, "to": end} for begin, end in gaps],
        "lost": [],
    }


async def test_incidents_are_drawn_by_hour_and_severity(api, clock, person):
    assert "No incidents occurred in this period." in await person.text("/")
    now = clock.now()
    for hours, severity in ((0, "Critical"), (0, "Low"), (5, "Low"), (30, "Low")):
        await api.services.database.write(
            add_incidents, occurred_at=now - timedelta(hours=hours), severity=severity
        )
    clock.advance(seconds=3)
    api.services.shared_results.expire()
    html = await person.html("/")
    assert "3 incidents occurred in the last 24 hours, with a peak of 2 in one hour" in text_of(
        html
    )
    assert "1 Critical, 1 Low" in html
    links = re.findall(r'<a href="(/incidents\?since=[^"]*)"', html)
    assert len(links) == 2
    text = await person.text(unescape(links[-1]))
    assert "Incidents 2" in text


@given(
    st.lists(st.dictionaries(st.sampled_from(list(Severity)), st.integers(1, 10**6)), max_size=9)
)
def test_bars_stay_in_the_chart(counts):
    hours = [
        {"start": f"2026-11-20T{place:02}:00:00Z", "counts": each}
        for place, each in enumerate(counts)
    ]
    chart = draw_trend(hours)
    assert chart.total == sum(sum(each.values()) for each in counts)
    for bar, each in zip(chart.bars, counts, strict=True):
        assert 0 <= bar.x <= bar.x + bar.width <= WIDTH + 0.1
        assert len(bar.pieces) == len(each)
        assert all(piece.y >= 0 for piece in bar.pieces)


async def test_a_page_is_small_before_its_data(person):
    html = await person.html("/incidents")
    assets = re.findall(r'(?:href|src)="(/console/[^"]+)"', html)
    assert len(assets) == 3
    sizes = [len(await (await person.get(path)).read()) for path in assets]
    assert len(html.encode()) + sum(sizes) < 100_000

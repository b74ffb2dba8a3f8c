"""What is brought up to date while one looks costs no more than it may."""

from __future__ import annotations

import asyncio
import re
from datetime import timedelta

import pytest

from tocsin.testing import ManualClock
from tocsin.web.console import live_updates
from tocsin.web.console.live_updates import MAX_STREAMS, LiveStreams
from tocsin.web.console.routes import PAGES

on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@on_sqlite
async def test_many_who_come_at_once_get_no_more_streams_than_there_are(person):
    responses = await asyncio.gather(*[person.get("/live/") for _ in range(MAX_STREAMS + 8)])
    statuses = [response.status for response in responses]
    for response in responses:
        response.close()
    assert (statuses.count(200), statuses.count(503)) == (MAX_STREAMS, 8)


@on_sqlite
async def test_a_page_that_there_is_not_takes_no_stream_away(person, monkeypatch):
    monkeypatch.setattr(live_updates, "MAX_STREAMS", 1)
    for _ in range(3):
        assert (await person.get("/live/deliveries/none")).status == 404


@pytest.mark.parametrize(
    "path", [page.path for page in PAGES if "{" not in page.path and not page.is_live]
)
@on_sqlite
async def test_a_page_that_does_not_update_itself_says_so(api, person, path):
    asked = f"{path}?plugin=webhook" if path == "/admin/new-destination" else path
    shown = api.services.clock.now().strftime("%Y-%m-%d %H:%M:%S UTC")
    assert (
        f"This page shows the state as of {shown} . It does not update automatically."
        in await person.text(asked)
    )


@on_sqlite
async def test_a_page_that_updates_itself_says_that_it_needs_scripts_for_that(person):
    html = await person.html("/providers")
    [words] = re.findall("<noscript>(.*?)</noscript>", html, re.DOTALL)
    assert "Without JavaScript, the page does not update automatically." in words


@pytest.mark.parametrize("path", ["/live/", "/live/providers"])
@on_sqlite
async def test_a_stream_has_no_head(api, person, path):
    response = await api.client.head(path, headers={"Cookie": person.cookie})
    assert response.status == 405


@on_sqlite
async def test_a_page_that_fails_while_it_is_followed_ends_the_stream(person, monkeypatch):
    rendered = 0

    async def fail(_self, render):
        nonlocal rendered
        rendered += 1
        raise ZeroDivisionError

    monkeypatch.setattr(LiveStreams, "_in_turn", fail)
    response = await person.get("/live/")
    body = await response.read()  # and no second answer within the first
    assert (rendered, body.count(b"event: "), b"HTTP/1.1" in body) == (1, 1, False)


@on_sqlite
async def test_a_stream_that_begins_as_the_node_ends_does_not_hold_it_up(api, person, monkeypatch):
    async def fail(_self, render):
        pytest.fail("the page is still followed")

    monkeypatch.setattr(LiveStreams, "_in_turn", fail)
    await api.client.app.shutdown()
    response = await person.get("/live/")
    assert (await response.read()).count(b"event: ") == 1


async def test_streams_render_one_after_the_other_and_rest_for_longer(monkeypatch):
    moments = iter(range(100))
    monkeypatch.setattr(live_updates, "monotonic", lambda: next(moments))
    clock, busy, most = Sleepless(), 0, 0

    async def render() -> str:
        nonlocal busy, most
        busy += 1
        most = max(most, busy)
        await asyncio.sleep(0)
        busy -= 1
        return "page"

    streams = LiveStreams(clock)
    await asyncio.gather(*[streams._in_turn(render) for _ in range(5)])
    assert most == 1
    assert clock.slept == [timedelta(seconds=3)] * 5


class Sleepless(ManualClock):
    """A clock that keeps how long it was slept on."""

    def __init__(self) -> None:
        super().__init__()
        self.slept: list[timedelta] = []

    async def sleep(self, duration: timedelta) -> None:
        """Return at once."""
        self.slept.append(duration)

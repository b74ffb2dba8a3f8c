"""What a person sees of the providers, and how a stretch of the past is read."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from sqlalchemy import insert

from api_server import URL
from tocsin.hookspecs import Provider
from tocsin.incidents.coverage.positions import StreamKey, load_position
from tocsin.incidents.storage.alerts import IncidentPolicy
from tocsin.incidents.storage.store import store_page
from tocsin.incidents.sync.lease import acquire_lease
from tocsin.model import Covered, Page
from tocsin.store.tables import record_shapes

KEY = StreamKey("edge", "changed")
HOSTILE = "<script>alert('{{ 7 * 7 }}')</script>"
NEW = "/admin/new-backfill"
ASKED = {"provider": "edge", "from": "2026-11-01T00:00", "to": "2026-11-08T00:00"}


async def test_every_provider_is_shown_with_how_it_does(api, viewer, clock):
    settings = Provider.Settings(plugin="crowdsec")
    await api.services.database.write(acquire_lease, "edge", settings, 7, clock.now())
    text = await viewer.text("/providers")
    assert "edge crowdsec waiting" in text
    assert "Node 7" in text
    assert "Capabilities backfill, refresh" in text
    assert "sensors simple waiting" in text
    assert 'id="edge"' in await viewer.html("/providers")
    assert 'data-live="/live/providers?' in await viewer.html("/providers")


async def test_a_stretch_of_the_past_is_read(person):
    text = await person.submit(NEW, NEW, **ASKED)
    assert "Backfill started." in text
    assert "edge no alerts 2026-11-01 00:00:00 UTC 2026-11-08 00:00:00 UTC running" in text
    text = await person.submit(NEW, NEW, **ASKED, alert="yes")
    assert "edge with alerts" in text


async def test_a_backfill_is_cancelled(person):
    await person.submit(NEW, NEW, **ASKED)
    html = await person.html("/providers")
    action = "/backfills/" + html.partition('action="/backfills/')[2].partition('"')[0]
    text = await person.submit("/providers", action)
    assert "Backfill cancelled." in text
    assert "cancelled" in text
    assert "/cancel" not in await person.html("/providers")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"provider": "sensors"}, "does not support backfills"),
        ({"provider": "<script>"}, "There is no provider"),
        ({"to": "2026-10-01T00:00"}, "`from` must be before `to`"),
        ({"to": "2027-11-01T00:00"}, "must be in the past"),
        ({"from": "yesterday"}, "use a time such as"),
        ({"from": ""}, "use a time such as"),
    ],
)
async def test_what_is_wrong_is_said_and_the_form_stays_filled(person, change, words):
    html = await person.html(NEW)
    token = html.partition('name="form_token" value="')[2].partition('"')[0]
    response = await person.post(NEW, form_token=token, **(ASKED | change))
    assert response.status == 422
    html = await response.text()
    assert words in html.replace("&#39;", "'")
    assert f'name="to" value="{(ASKED | change)["to"]}:00"' in html
    assert "<script>" not in html


async def test_the_form_comes_filled_with_what_is_missing(person):
    html = await person.html(f"{NEW}?provider=edge&from=2026-11-01T01:00:00%2B01:00")
    assert 'name="from" value="2026-11-01T00:00:00" data-utc required>' in html
    assert "sensors" not in html


async def test_a_viewer_sees_the_backfills_and_changes_nothing(admin, viewer):
    asked = {"provider": "edge", "from": "2026-11-01T00:00:00Z", "to": "2026-11-08T00:00:00Z"}
    await admin.ask("POST", "/api/admin/backfills", 202, json=asked)
    html = await viewer.html("/providers")
    assert "2026-11-08" in html
    assert html.count('method="post"') == 1  # signing out
    assert "You need the operator role" in await viewer.text(NEW, 403)
    assert (await viewer.post(NEW, **ASKED)).status == 403


@pytest.fixture
async def gap(api, clock) -> None:
    """A stream of which the second hour was lost, as its SIEM says."""
    database, begin = api.services.database, clock.now() - timedelta(hours=3)
    for hour, lost in enumerate((None, HOSTILE, None)):
        start = begin + timedelta(hours=hour)
        covered = Covered(source="", start=start, end=start + timedelta(hours=1), lost=lost)
        position = await database.read(load_position, KEY)
        await database.write(
            store_page,
            KEY,
            Page(next_position={}, covered=(covered,)),
            revision=position.revision,
            policy=IncidentPolicy(URL),
            now=clock.now(),
        )


@pytest.mark.usefixtures("gap")
async def test_what_is_missing_is_drawn_told_and_can_be_read(person):
    text = await person.text("/providers")
    assert "changed gaps" in text
    assert "Gaps" in text
    assert re.search(r"\b1 anomaly\b", await person.text("/"))  # and counted once
    missing = "lost changed 2026-11-21 10:00:00 UTC 2026-11-21 11:00:00 UTC"
    assert f"{missing} {HOSTILE} Backfill" in text
    html = await person.html("/providers")
    assert 'class="lost"' in html
    assert "<script>alert" not in html
    place = html.partition(f'href="{NEW}?provider=edge')[2].partition('"')[0]
    form = await person.html(f"{NEW}?provider=edge{place}".replace("&amp;", "&"))
    assert 'value="2026-11-21T10:00:00"' in form
    assert 'value="2026-11-21T11:00:00"' in form


@pytest.mark.usefixtures("gap")
async def test_the_calendar_names_its_weeks_and_offers_days_with_gaps_for_a_backfill(person):
    html = await person.html("/providers/edge/coverage")
    assert re.findall(r"<text[^>]*>([^<]*)", html.partition('class="calendar"')[2]) == [
        "2026-10-26",
        "2026-11-02",
        "2026-11-09",
        "2026-11-16",
    ]
    assert "<title>2026-11-21: 60 min missing</title>" in html
    assert "from=2026-11-21T00%3A00%3A00Z" in html


@pytest.mark.usefixtures("gap")
async def test_a_viewer_is_not_led_to_reading_it(viewer):
    text = await viewer.text("/providers")
    assert "Gaps" in text
    assert "/admin/new-backfill" not in await viewer.html("/providers")


async def test_fields_that_vanished_are_shown_with_what_to_do(api, viewer, clock):
    drift = {
        "kind": "changed",
        "field": "level",
        "problem": "missing",
        "expected": "string",
        "found": None,
        "since": "2026-11-20T10:00:00.000Z",
        "records": 48,
        "appeared": [HOSTILE],
    }
    row = {"provider": "edge", "kind": "changed", "shape": {}, "updated_at": clock.now()}
    await api.services.database.write(
        lambda connection: connection.execute(insert(record_shapes), row | {"drift": [drift]})
    )
    text = await viewer.text("/providers")
    assert "changed: level has been missing from all records since 2026-11-20 10:00:00 UTC" in text
    assert "update Tocsin" in text
    assert "<script>alert" not in await viewer.html("/providers")


async def test_a_provider_is_disabled_for_a_while_and_enabled(person):
    form = {"duration": "PT1H", "until": "", "reason": HOSTILE}
    html = await person.submit("/providers", "/providers/edge/stop", **form)
    assert "Provider disabled." in html
    assert "edge was disabled by ana on 2026-11-21 12:00:00 UTC" in html
    assert "will be enabled on 2026-11-21 13:00:00 UTC" in html
    assert "<script>alert" not in await person.html("/providers")
    assert "Reads resume" in await person.submit("/providers", "/providers/edge/start")


async def test_a_form_with_a_stop_that_is_refused_keeps_its_input(person):
    [token] = set(re.findall(r'name="form_token" value="([^"]+)"', await person.html("/providers")))
    form = {"duration": "PT4H", "until": "2020-01-01T00:00:00", "reason": "it floods us"}
    response = await person.post("/providers/edge/stop", form_token=token, **form)
    assert response.status == 422
    shown = (await response.text()).partition('id="stop-edge" open')[2]
    assert 'value="it floods us"' in shown
    assert '<option value="PT4H" selected>' in shown

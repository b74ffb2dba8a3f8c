"""What a person sees of deliveries, and what can be done with them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import update

from delivery_rows import NOW, add_delivery, add_destination
from tocsin.delivery import replay_batch
from tocsin.model import EventType
from tocsin.store.tables import attempts, deliveries, events
from tocsin.web.console.forms import to_field, to_utc

HOSTILE = "<script>alert('{{ 7 * 7 }}')</script>"


@pytest.fixture
def write(api):
    return api.services.database.write


async def test_where_nothing_was_sent_that_is_said(viewer):
    assert "No deliveries yet" in await viewer.text("/deliveries")
    assert "No replays yet. To resend deliveries, filter them by state" in await viewer.text(
        "/replays"
    )
    assert '<a href="/deliveries?state=dead">Dead deliveries</a>' in await viewer.html("/replays")


async def test_the_list_says_where_each_is_and_why(write, viewer):
    await write(add_destination)
    await write(add_delivery, "delivered", remote_id="T-1", remote_url="https://desk.example/T-1")
    await write(add_delivery, "pending", number=2, tried=2, reason="503: busy")
    html = await viewer.html("/deliveries")
    assert 'href="https://desk.example/T-1"' in html
    text = await viewer.text("/deliveries")
    assert "incident 2 soc waiting next attempt 2026-11-21 12:05:00 UTC 503: busy 2" in text


async def test_the_state_on_hold_is_shown_in_words(write, person):
    await write(add_destination)
    await write(add_delivery, "on_hold")
    for path in ("/deliveries?state=on_hold", "/deliveries", "/destinations/soc"):
        html = await person.html(path)
        assert ">on hold<" in html, path
        assert ">on_hold<" not in html, path


async def test_an_address_that_is_no_page_is_no_link(write, viewer):
    await write(add_delivery, "delivered", remote_id="T-1", remote_url="javascript:alert(1)")
    html = await viewer.html("/deliveries")
    assert "T-1" in html
    assert "javascript:" not in html


@pytest.mark.parametrize(
    "query",
    [
        "state=dead",
        "destination=other",
        "event_type=schedule-disabled",
        "subject=incident:7",
        "since=2026-11-21T12:30:00",
        "since=2026-11-21T13:30:00%2B01:00",
    ],
)
async def test_the_list_is_narrowed(write, viewer, query):
    other = {"to": "other", "number": 7, "kind": EventType.SCHEDULE_DISABLED}
    await write(add_delivery, "delivered")
    await write(add_delivery, **other, at=NOW + timedelta(hours=1))
    text = await viewer.text(f"/deliveries?{query}")
    assert "Deliveries 1" in text
    assert "incident 7" in text
    assert "No deliveries match these filters." in await viewer.text(
        "/deliveries?destination=nowhere"
    )


async def test_what_a_filter_takes_is_said(viewer):
    assert "state" in await viewer.text("/deliveries?state=lost", 422)
    assert "2026-11-21T05:33:01Z" in await viewer.text("/deliveries?since=yesterday", 422)


async def test_the_next_page_keeps_the_filters(write, viewer):
    await write(
        lambda connection: [add_delivery(connection, number=number) for number in range(51)]
    )
    html = await viewer.html("/deliveries?state=dead")
    following = html.partition('rel="next" href="')[2].partition('"')[0].replace("&amp;", "&")
    assert following.startswith("/deliveries?state=dead&cursor=")
    assert "incident 0" in await viewer.text(following)


async def test_a_delivery_shows_what_the_receiver_answered(write, viewer):
    id_ = await write(add_delivery, tried=2, reason="503: busy")
    text = await viewer.text(f"/deliveries/{id_}")
    for part in ("dead", "503: busy", "38 ms", "later", "busy \ufffd", '"incident_number": 1'):
        assert part in text
    html = await viewer.html(f"/deliveries/{id_}")
    assert 'href="/incidents/1"' in html
    assert 'href="/destinations/soc"' in html


async def test_what_receivers_say_is_text(write, viewer):
    def add(connection) -> str:
        id_ = add_delivery(connection, remote_id=HOSTILE, reason=HOSTILE)
        connection.execute(update(attempts).values(response=HOSTILE.encode(), reason=HOSTILE))
        connection.execute(update(events).values(data={"title": HOSTILE}))
        return id_

    id_ = await write(add)
    for path in (f"/deliveries/{id_}", "/deliveries", f"/deliveries/{id_}/body"):
        assert "<script>alert" not in await viewer.html(path)
    assert (await viewer.text(f"/deliveries/{id_}")).count(HOSTILE) >= 3


async def test_answers_in_json_are_laid_out(write, viewer):
    def add(connection) -> str:
        id_ = add_delivery(connection)
        connection.execute(update(attempts).values(response=b'{"error":{"field":"severity"}}'))
        return id_

    html = await viewer.html(f"/deliveries/{await write(add)}")
    assert "{\n  &#34;error&#34;: {\n    &#34;field&#34;: &#34;severity&#34;" in html


async def test_an_answer_that_nests_too_deeply_to_be_laid_out_is_shown_as_it_came(write, viewer):
    nested = "[" * 400 + "]" * 400

    def add(connection) -> str:
        id_ = add_delivery(connection)
        connection.execute(update(attempts).values(response=nested.encode()))
        return id_

    assert nested in await viewer.html(f"/deliveries/{await write(add)}")


@pytest.mark.parametrize(
    ("subject", "place"),
    [
        ("incident:7", "/incidents/7"),
        (
            "session:ses_01JD00000000",
            "/investigations/ses_01JD00000000",
        ),
        ("schedule:a/b", "/schedules/a%2Fb"),
    ],
)
async def test_a_delivery_leads_to_what_its_event_is_about(write, viewer, subject, place):
    def add(connection) -> str:
        id_ = add_delivery(connection)
        connection.execute(update(deliveries).values(subject=subject))
        return id_

    assert f'<a href="{place}">' in await viewer.html(f"/deliveries/{await write(add)}")


async def test_a_delivery_that_there_is_not_has_no_page(viewer):
    for path in ("/deliveries/dlv_none", "/deliveries/dlv_none/body", "/deliveries/%00"):
        assert "Not Found" in await viewer.text(path, 404)


async def test_one_is_sent_again(write, person):
    await write(add_destination)
    id_ = await write(add_delivery)
    page = f"/deliveries/{id_}"
    text = await person.submit(page, f"{page}/replay")
    assert "Delivery queued. Tocsin sends it immediately." in text
    assert "waiting" in text


async def test_why_one_cannot_be_sent_again_is_said(write, person):
    await write(add_destination, state="deleted")
    page = f"/deliveries/{await write(add_delivery)}"
    text = await person.submit(page, f"{page}/replay", 409)
    assert "cannot be replayed" in text
    assert "Response" in text


async def test_all_that_a_filter_leaves_are_sent_again(write, person, clock):
    await write(add_destination)
    await write(add_delivery)
    await write(add_delivery, number=2)
    await write(add_delivery, number=3, to="other")
    page, filters = (
        "/deliveries?state=dead&destination=soc",
        {"state": "dead", "destination": "soc"},
    )
    assert "Resend all 2" in await person.text(page)
    action = "/replays?state=dead&amp;destination=soc"
    text = await person.submit(page, action, **filters)
    assert "Replays 1" in text
    assert "dead to soc running 0 of 2 ana" in text
    assert "Replay running : 0 of 2" in await person.text("/deliveries")
    await write(replay_batch, clock.now())
    assert "completed" in await person.text("/replays")


async def test_a_replay_of_part_of_what_is_shown_is_not_offered(person, write):
    await write(add_delivery)
    for query in ("", "?state=pending", "?state=dead&subject=incident:1"):
        text = await person.text(f"/deliveries{query}")
        assert "filter by one of these states: dead" in text
        assert "Resend all 1" not in text


async def test_a_replay_is_cancelled(write, person):
    await write(add_delivery)
    await person.submit("/deliveries?state=dead", "/replays?state=dead", state="dead")
    html = await person.html("/replays")
    action = html.partition('action="/replays/')[2].partition('"')[0]
    text = await person.submit("/replays", f"/replays/{action}")
    assert "Replay cancelled." in text
    assert "cancelled" in text


async def test_a_viewer_changes_nothing(write, viewer):
    id_ = await write(add_delivery)
    for path in (f"/deliveries/{id_}", "/deliveries?state=dead", "/replays"):
        assert (await viewer.html(path)).count('method="post"') == 1  # signing out
    for action in (f"/deliveries/{id_}/replay", "/replays"):
        assert (await viewer.post(action)).status == 403


async def test_a_page_of_one_is_kept_up_to_date(write, person):
    id_ = await write(add_delivery)
    assert f'data-live="/live/deliveries/{id_}?' in await person.html(f"/deliveries/{id_}")


async def test_what_would_be_sent_is_shown(write, person):
    await write(add_destination)
    id_ = await write(add_delivery)
    text = await person.text(f"/deliveries/{id_}/body")
    assert "Payload preview for soc" in text
    assert "secret" in text  # which the settings of this destination lack


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("2026-11-21T05:33", "2026-11-21T05:33:00"),
        ("2026-11-21T05:33:01.5Z", "2026-11-21T05:33:01"),
        ("2026-11-21T05:33:01+01:00", "2026-11-21T04:33:01"),
    ],
)
def test_a_moment_without_a_zone_is_utc(text, field):
    assert (to_field(text), to_utc(text)) == (field, f"{field}Z")


def test_what_is_no_moment_is_left_for_the_endpoint_to_judge():
    assert to_utc("yesterday") == to_field("yesterday") == "yesterday"

"""Schedules in the console: what runs when, what became of it, and what can be done about it."""

from __future__ import annotations

import pytest

from api_server import URL
from schedule_harness import Office
from tocsin.recurrence import ScheduleDefinition
from tocsin.schedules import apply_schedules

HOSTILE = "<script>alert(1)</script>\"'{{ 7 * 7 }}"
GOOD = {"name": "nightly", "query": "new logins", "cron": "0 2 * * *"}

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@pytest.fixture
def office(api, clock) -> Office:
    return Office(api.services.database, clock)


@pytest.fixture
def from_file(api, office):
    """Create schedules those of a file, and return the id of the first."""

    async def from_file(*names: str) -> str:
        wanted = {name: ScheduleDefinition(query="logins", interval="1h") for name in names}
        now = api.services.clock.now()
        await api.services.database.write(apply_schedules, wanted, "file", now)
        return "" if not names else (await id_of(api, names[0]))

    async def id_of(api, name: str) -> str:
        token = {"Authorization": f"Bearer {await api.token()}"}
        response = await api.client.get("/api/admin/schedules", headers=token)
        listed = (await response.json())["schedules"]
        return next(schedule["id"] for schedule in listed if schedule["name"] == name)

    return from_file


async def test_an_empty_list_says_what_a_schedule_is(person):
    text = await person.text("/schedules")
    assert "No schedules yet" in text
    assert "No runs are due in the next 24 hours." in text


async def test_a_schedule_is_made_by_a_form_and_its_page_follows(person):
    form = GOOD | {
        "timezone": "Europe/Berlin",
        "persona": "executive",
        "provider": "edge",
        "timeout": "90s",
        "jitter": "5m",
        "failure_limit": "3",
        "overlap": "queue",
        "tags": "night, soc",
        "ends_at": "2027-01-01T00:00:00Z",
    }
    text = await person.submit("/schedules/new", "/schedules/new", **form)
    for words in (
        "Schedule created.",
        "nightly active",
        "every day at 02:00 (Europe/Berlin) 0 2 * * *",
        "delayed by up to 5m",
        "executive",
        "3 failures in a row",
        "queue the next run",
        "night, soc",
        "2027-01-01 00:00:00 UTC",
        "No runs yet.",
    ):
        assert words in text
    listed = await person.text("/schedules")
    assert "nightly new logins night soc active every day at 02:00" in listed


async def test_what_was_left_empty_has_its_default(person):
    empty = dict.fromkeys(("provider", "interval", "timezone", "jitter", "tags", "timeout"), "")
    text = await person.submit("/schedules/new", "/schedules/new", **GOOD, **empty)
    assert "(UTC)" in text
    assert "Run timeout 10m" in text


async def test_each_mistake_stands_at_its_field_and_what_was_written_is_kept(person):
    wrong = {
        "name": "a name",
        "query": HOSTILE,
        "cron": "61 * * * *",
        "timezone": "Europe/Berln",
        "jitter": "5",
        "failure_limit": "many",
        "starts_at": "tomorrow",
    }
    html = await (await send(person, "/schedules/new", wrong)).text()
    for name in wrong.keys() - {"query"}:
        assert f'id="wrong-{name}"' in html, name
    assert 'id="wrong-query"' not in html
    assert "did you mean &#39;Europe/Berlin&#39;?" in html
    assert 'value="61 * * * *"' in html
    assert "<script>alert" not in html
    assert "{{ 7 * 7 }}" in html


async def send(person, action: str, form: dict[str, str]):
    page = await person.html(action)
    token = page.partition('name="form_token" value="')[2][:64]
    return await person.post(action, form_token=token, **form)


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({"cron": ""}, "neither is given"),
        ({"interval": "1h"}, "both are given"),
        ({"ends_at": "2026-11-21T11:00:00Z"}, "it has passed"),
        ({"provider": "elsewhere"}, "elsewhere"),
        ({"failure_limit": "1" * 5000}, "failure_limit"),
    ],
)
async def test_what_cannot_be_is_told_in_the_words_of_the_api(person, form, words):
    given = GOOD | form
    assert words in await person.submit("/schedules/new", "/schedules/new", 422, **given)


async def test_a_name_is_given_once(person):
    await person.submit("/schedules/new", "/schedules/new", **GOOD)
    text = await person.submit("/schedules/new", "/schedules/new", 409, **GOOD)
    assert "A schedule named 'nightly' already exists." in text


async def test_a_schedule_is_changed_and_what_is_emptied_returns_to_its_default(person, office):
    made = await office.make(jitter="5m", tags=("night",), timeout="90s")
    page = f"/schedules/{made.id}/change"
    html = await person.html(page)
    for written in ('value="1h"', 'value="5m"', 'value="90s"', 'value="night"', ">\nnew logins<"):
        assert written in html
    form = {"query": "old logins", "cron": "@daily", "interval": "", "jitter": "", "tags": ""}
    text = await person.submit(page, page, **form)
    assert "Schedule saved." in text
    assert "old logins" in text
    assert "every day at 00:00 (UTC) @daily" in text
    assert "delayed" not in text
    assert "night," not in text


async def test_a_wrong_change_keeps_what_was_written(person, office):
    page = f"/schedules/{(await office.make()).id}/change"
    response = await send(person, page, {"query": "q", "interval": "often"})
    html = await response.text()
    assert response.status == 422
    assert 'value="often"' in html
    assert 'id="wrong-interval"' in html


async def test_a_schedule_is_run_disabled_enabled_and_deleted(person, office):
    page = f"/schedules/{(await office.make()).id}"
    text = await person.submit(page, f"{page}/run")
    assert "Run requested. The run starts now" in text
    assert "running" in text
    assert "ana" in text
    refused = await person.submit(page, f"{page}/run", 409)
    assert "The schedule was not started" in refused
    assert "This schedule was disabled manually." in await person.submit(page, f"{page}/disable")
    assert "Schedule enabled" in await person.submit(page, f"{page}/enable")
    deleted = await person.submit(page, f"{page}/delete")
    assert "nightly deleted" in deleted
    assert "Run now" not in deleted
    assert "nightly" not in await person.text("/schedules")
    assert "nightly" in await person.text("/schedules?status=deleted")


async def test_the_address_in_schedule_disabled_opens_the_page_that_says_why(person, office):
    made = await office.make(failure_limit=2)
    await office.run_and_fail(2)
    event = (await office.events())[-1]
    assert event["event_type"] == "schedule-disabled"
    await person.sign_in()
    text = await person.text(event["data"]["url"].removeprefix(URL))
    assert "This schedule was disabled after 2 failures in a row." in text
    assert "incident 404 does not exist" in text
    html = await person.html(f"/schedules/{made.id}")
    for run in await office.runs(made.id):
        assert f'href="/investigations/{run["session_id"]}"' in html


async def test_runs_are_narrowed_by_their_state_and_paged(person, office):
    made = await office.make(interval="10s")
    for _ in range(52):
        await office.fire(seconds=10)
    page = f"/schedules/{made.id}"
    first = await person.html(page)
    assert first.count("is-skipped") == 50
    older = first.partition('rel="next" href="')[2].partition('"')[0].replace("&amp;", "&")
    second = await person.html(older)
    assert (second.count("is-skipped"), second.count("is-running")) == (1, 1)
    assert "No runs match this filter." in await person.text(f"{page}?state=failed")
    assert "use one of" in await person.text(f"{page}?state=nonsense", 422)


async def test_what_was_missed_is_one_entry_that_says_how_many(person, office):
    made = await office.make()
    await office.fire(hours=5)
    await person.sign_in()
    text = await person.text(f"/schedules/{made.id}?state=missed")
    assert "4 times, until" in text


async def test_the_list_is_narrowed_by_status_and_tag(person, office):
    await office.make("one", tags=("night",))
    await office.make("other")
    narrowed, _, due = (await person.text("/schedules?tag=night")).partition(
        "Upcoming runs, next 24 hours"
    )
    assert "one" in narrowed
    assert "other" not in narrowed
    assert "other" in due
    assert "No schedules match these filters." in await person.text("/schedules?status=disabled")
    assert "use one of" in await person.text("/schedules?status=nonsense", 422)


async def test_what_the_file_manages_is_changed_there_and_can_be_run_and_disabled(
    person, from_file
):
    page = f"/schedules/{await from_file('watch')}"
    html = await person.html(page)
    assert "Managed by <code>plugins.toml</code>" in html
    assert f'action="{page}/run"' in html
    assert f'action="{page}/disable"' in html
    assert f'action="{page}/delete"' not in html
    assert f'href="{page}/change"' not in html
    assert "Edit the file, then apply the changes" in await person.text(f"{page}/change")


async def test_what_the_file_names_no_more_can_only_be_deleted(person, from_file):
    page = f"/schedules/{await from_file('watch')}"
    await from_file()
    html = await person.html(page)
    assert "because it was removed from plugins.toml" in html
    assert f'action="{page}/enable"' not in html
    assert "watch deleted" in await person.submit(page, f"{page}/delete")


async def test_a_viewer_reads_everything_and_changes_nothing(viewer, office):
    made = await office.make()
    for page in ("/schedules", f"/schedules/{made.id}"):
        html = await viewer.html(page)
        assert "nightly" in html
        assert html.count('method="post"') == 1  # signing out
    for page in ("/schedules/new", f"/schedules/{made.id}/change"):
        await viewer.html(page, 403)
        assert (await viewer.post(page, **GOOD)).status == 403
    for action in ("run", "enable", "disable", "delete"):
        assert (await viewer.post(f"/schedules/{made.id}/{action}")).status == 403


async def test_hostile_words_are_shown_as_words(person, office):
    made = await office.make(interval="1h")
    page = f"/schedules/{made.id}/change"
    await person.submit(page, page, query=HOSTILE, interval="1h")
    for path in ("/schedules", f"/schedules/{made.id}", page):
        assert "<script>alert" not in await person.html(path)
        assert HOSTILE in await person.text(path)


@pytest.mark.parametrize("schedule_id", ["sch_x", "%00", "sch_01KAH4Q7ZB2N8D5M3X9R6T1V0W"])
async def test_what_is_not_there_is_a_page_that_says_so(person, schedule_id):
    for page in (f"/schedules/{schedule_id}", f"/schedules/{schedule_id}/change"):
        assert "Not Found" in await person.text(page, 404)

"""Addresses and values that nobody types make no error of the service."""

from __future__ import annotations

import re

import pytest
from yarl import URL

from tocsin.web.console.forms import Form, to_utc
from tocsin.web.console.settings_form import read_settings

on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
NESTED = "[" * 400 + "]" * 400


@pytest.mark.parametrize(
    "path",
    [
        "/schedules/%0A",
        "/schedules/a%3Fb%23",
        "/deliveries/..%2F..%2Fx",
        "/live/investigations/a%2F..%2Fb",
        "/investigations/%2F%2Fx:99999999",
        "/search?q=%00",
        "/graph?entity=%00x",
        "/graph?entity=a&skip=99999",
        "/deliveries?since=0001-01-01T00:00:00%2B14:00",
        "/deliveries?since=9999-12-31T23:59:59-14:00",
        "/admin/audit?since=0001-01-01T00:00:00%2B14:00",
        "/admin/new-backfill?from=0001-01-01T00:00:00%2B14:00",
        "/incidents/99999999999999999999999",
        "/incidents?cursor=%00",
        "/replays?cursor=%FF",
        "/admin/new-destination?plugin=%00",
        "/?message=%00",
        "/sign-in?next=%00",
    ],
)
@on_sqlite
async def test_an_odd_address_is_no_fault_of_ours(api, person, path):
    address = URL(path, encoded=True)
    response = await api.client.get(address, headers={"Cookie": person.cookie})
    assert response.status < 500, await response.text()
    response.close()


@on_sqlite
async def test_whoever_asks_for_the_head_of_a_page_is_led_to_the_sign_in_too(api):
    response = await api.client.head("/incidents", allow_redirects=False)
    assert (response.status, response.headers["Location"]) == (303, "/sign-in?next=/incidents")


@on_sqlite
async def test_a_value_that_nests_too_deeply_is_refused(person):
    page = "/admin/new-destination?plugin=webhook"
    found = re.search(r'name="form_token" value="([^"]+)"', await person.html(page))
    form = {"form_token": found[1], "name": "soc", "plugin": "webhook", "anything.x": NESTED}
    response = await person.post(page, **form)
    assert response.status == 422
    assert "The value of x is nested too deeply. Use fewer levels." in await response.text()


@on_sqlite
@pytest.mark.parametrize("path", ["/nowhere", "/incidents/1/nothing", "/console/none.css"])
async def test_a_person_who_is_lost_is_shown_a_page_and_a_program_a_problem(api, person, path):
    headers = {"Cookie": person.cookie, "Accept": "text/html,*/*;q=0.8"}
    shown = await api.client.get(path, headers=headers)
    assert (shown.status, shown.content_type) == (404, "text/html")
    assert "Back to the overview" in await shown.text()
    told = await api.client.get(path, headers={"Accept": "application/json"})
    assert (told.status, told.content_type) == (404, "application/problem+json")
    told = await api.client.get("/api/nowhere", headers=headers)
    assert (told.status, told.content_type) == (404, "application/problem+json")


def test_a_moment_outside_the_calendar_stays_as_it_was_written():
    assert to_utc("0001-01-01T00:00:00+14:00") == "0001-01-01T00:00:00+14:00"
    assert to_utc("9999-12-31T23:59:59-14:00") == "9999-12-31T23:59:59-14:00"


@pytest.mark.parametrize(("text", "value"), [("true", "true"), ("7", 7), ("0.5", 0.5), ("x", "x")])
def test_a_number_is_none_but_a_number(text, value):
    assert read_settings(Form({"number.limit": [text]})) == {"limit": value}


@on_sqlite
async def test_the_page_of_an_internal_error_names_the_request(api, person, monkeypatch):
    async def fail(*_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr("tocsin.web.console.routes._Console._context", fail)
    response = await api.client.get("/search", headers={"Cookie": person.cookie})
    assert response.status == 500
    assert f"Request ID: <code>{response.headers['X-Request-Id']}</code>" in await response.text()

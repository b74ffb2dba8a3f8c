"""What each role of the console may see and change."""

from __future__ import annotations

import re

import pytest

from console import Person
from delivery_rows import add_destination
from incident_rows import add_incidents
from tocsin.credentials import ConsoleRole
from tocsin.web.console.page_request import find_endpoint
from tocsin.web.console.routes import ACTIONS
from tocsin.web.context import AccessRole
from tocsin.web.endpoints import ENDPOINTS

on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
_TOKEN = re.compile(r'name="form_token" value="([0-9a-f]{64})"')
_FORMS = re.compile(r'<form[^>]* method="post" action="([^"?#]+)')

MAY_OPEN = {
    "/admin/audit": {"admin", "auditor"},
    "/admin/new-destination?plugin=webhook": {"admin", "operator"},
    "/schedules/new": {"admin", "operator"},
    "/admin/api-keys": {"admin"},
    "/admin/plugins": {"admin"},
    "/admin/people": {"admin"},
}
MAY_SEND = {
    "/incidents/1/acknowledge": {"admin", "operator", "analyst"},
    "/incidents/triage": {"admin", "operator", "analyst"},
    "/replays": {"admin", "operator", "analyst"},
    "/destinations/soc/test": {"admin", "operator"},
    "/schedules/new": {"admin", "operator"},
    "/admin/api-keys": {"admin"},
}
READS = ("/", "/incidents", "/incidents/1", "/deliveries", "/destinations/soc", "/schedules")


@on_sqlite
@pytest.mark.parametrize("role", list(ConsoleRole))
async def test_each_role_sees_and_sends_what_it_is_for(api, role):
    await api.services.database.write(add_incidents)
    await api.services.database.write(add_destination, "soc")
    person = Person(api)
    await person.sign_in(role)
    for path, roles in MAY_OPEN.items():
        response = await person.get(path)
        assert (response.status == 200) == (role in roles), path
    [token] = set(_TOKEN.findall(await person.html("/")))
    for path, roles in MAY_SEND.items():
        response = await person.post(path, form_token=token, acknowledged="true")
        assert (response.status != 403) == (role in roles), path
        if response.status == 403:
            assert f"but you have the {role} role." in await response.text()


@on_sqlite
@pytest.mark.parametrize("role", list(ConsoleRole))
async def test_a_page_offers_no_form_that_would_be_refused(api, role):
    await api.services.database.write(add_incidents)
    await api.services.database.write(add_destination, "soc")
    person = Person(api)
    await person.sign_in(role)
    patterns = [
        (
            re.compile(re.sub(r"{\w+}", "[^/]+", action.path)),
            find_endpoint(action.handler).console_role,
        )
        for action in ACTIONS
    ]
    offered = set()
    for page in READS:
        for form in _FORMS.findall(await person.html(page)):
            wanted = [least for each, least in patterns if each.fullmatch(form)]
            assert all(role.includes(least) for least in wanted), (page, form)
            offered |= set(wanted)
    assert offered == {
        ConsoleRole.ADMIN: {ConsoleRole.ANALYST, ConsoleRole.OPERATOR},
        ConsoleRole.OPERATOR: {ConsoleRole.ANALYST, ConsoleRole.OPERATOR},
        ConsoleRole.ANALYST: {ConsoleRole.ANALYST},
    }.get(role, set())


@on_sqlite
async def test_a_change_is_refused_once_the_role_is_lost_meanwhile(api):
    await api.services.database.write(add_incidents)
    person = Person(api)
    await person.sign_in("analyst")
    html = await person.html("/incidents/1")
    await person.sign_in("viewer")
    [token] = set(_TOKEN.findall(await person.html("/")))
    assert 'action="/incidents/1/acknowledge"' in html
    response = await person.post("/incidents/1/acknowledge", form_token=token, acknowledged="true")
    assert response.status == 403


def test_credentials_stay_with_admins_and_the_rest_below_admin_with_operators():
    changes = [each for each in ENDPOINTS if each.method != "GET"]
    admins = {
        "/".join(each.path.split("/")[:4]) for each in changes if each.console_role == "admin"
    }
    assert {path for path in admins if path.startswith("/api/admin")} == {
        "/api/admin/api-keys",
        "/api/admin/api-clients",
        "/api/admin/console-sessions",
        "/api/admin/erasures",
        "/api/admin/people",
        "/api/admin/reload",
    }
    public = [each for each in changes if each.path.startswith("/api/v1")]
    assert {each.console_role for each in public} == {ConsoleRole.ANALYST}
    assert all(each.access is not AccessRole.PUBLIC for each in public)


def test_each_endpoint_names_who_may_read_it():
    reads = [each for each in ENDPOINTS if each.method == "GET"]
    closed = {
        each.path: each.console_role
        for each in reads
        if each.access is AccessRole.ADMIN and each.console_role != "viewer"
    }
    assert {path for path, role in closed.items() if role == "auditor"} == {"/api/admin/audit"}
    assert {"/".join(path.split("/")[:4]) for path, role in closed.items() if role == "admin"} == {
        "/api/admin/api-keys",
        "/api/admin/api-clients",
        "/api/admin/console-sessions",
        "/api/admin/people",
        "/api/admin/plugins",
    }
    public = [each for each in reads if each.path.startswith("/api/v1")]
    assert {each.console_role for each in public} == {"viewer"}

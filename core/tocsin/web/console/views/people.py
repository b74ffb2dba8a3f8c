"""People who sign in with passkeys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tocsin.credentials import ConsoleRole, PasskeysUnavailable
from tocsin.web.console.forms import Form
from tocsin.web.console.page_request import PageRequest, select_query
from tocsin.web.console.pages import ConsoleAction, ConsolePage
from tocsin.web.routes import people as api

_LIST, _ONE = "/admin/people", "/admin/people/{person}"
_ROLES: Mapping[ConsoleRole, str] = {
    ConsoleRole.VIEWER: "can read everything except administration pages",
    ConsoleRole.AUDITOR: "can do everything that viewers can, and read the audit log",
    ConsoleRole.ANALYST: "can do everything that viewers can, triage and investigate "
    "incidents, and resend deliveries",
    ConsoleRole.OPERATOR: "can do everything that analysts can, and manage "
    "destinations, schedules and emergency stops",
    ConsoleRole.ADMIN: "can do everything",
}
"""The access of each role, from the least to the most."""


async def show_people(request: PageRequest) -> Mapping[str, Any]:
    """Return one page of the people, and the data of the form for a new person."""
    found = await request.ask(api.list_people, {}, **select_query(request, "cursor"))
    people = [summarize_person(person) for person in found["people"]]
    return {"people": people, "next_cursor": found["next_cursor"], **_form(request)}


async def show_person(request: PageRequest) -> Mapping[str, Any]:
    """Return a person with their passkeys."""
    person = summarize_person(await request.ask(api.get_person))
    is_self = request.user.session.principal == f"person:{person['name']}"
    return {"person": person, "is_self": is_self, **_form(request)}


def summarize_person(person: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a person with the time of their last sign-in, None if they have never signed in."""
    used = [each["last_used_at"] for each in person["passkeys"] if each["last_used_at"]]
    return {**person, "last_sign_in_at": max(used, default=None)}


def _form(request: PageRequest) -> Mapping[str, Any]:
    try:
        request.services.passkeys.require_available()
    except PasskeysUnavailable as error:
        return {"roles": _ROLES, "unavailable": str(error)}
    return {"roles": _ROLES, "unavailable": None}


def _new(form: Form) -> Mapping[str, Any]:
    return {**form.given("name", "role"), **_lifetime(form)}


def _lifetime(form: Form) -> Mapping[str, Any]:
    return form.numbers("expires_in_hours")


PAGES = (
    ConsolePage(
        path=_LIST,
        view=show_people,
        template="people.html.j2",
        section="people",
        role=ConsoleRole.ADMIN,
    ),
    ConsolePage(
        path=_ONE,
        view=show_person,
        template="person.html.j2",
        section="people",
        role=ConsoleRole.ADMIN,
    ),
)
ACTIONS = (
    ConsoleAction(
        path=_LIST,
        handler=api.create_person,
        page=_LIST,
        message="Person added.",
        body=_new,
        keeps=True,
        gives_access=True,
    ),
    ConsoleAction(
        path=f"{_ONE}/link",
        handler=api.create_passkey_link,
        page=_ONE,
        message="Link created. This person's earlier links no longer work.",
        body=_lifetime,
        keeps=True,
        gives_access=True,
    ),
    ConsoleAction(
        path=f"{_ONE}/role",
        handler=api.update_person,
        page=_ONE,
        message="Role saved. If you changed the role, the person must sign in again.",
        body=lambda form: form.given("role"),
        gives_access=True,
    ),
    ConsoleAction(
        path=f"{_ONE}/disable",
        handler=api.update_person,
        page=_ONE,
        message="Person disabled. Their sessions have ended, and their links no longer work.",
        body=lambda _form: {"enabled": False},
    ),
    ConsoleAction(
        path=f"{_ONE}/enable",
        handler=api.update_person,
        page=_ONE,
        message="Person enabled. They can sign in with their passkeys.",
        body=lambda _form: {"enabled": True},
        gives_access=True,
    ),
    ConsoleAction(
        path=f"{_ONE}/passkeys/{{passkey_id}}/delete",
        handler=api.delete_passkey,
        page=_ONE,
        message="Passkey deleted. The person's sessions have ended.",
    ),
    ConsoleAction(
        path=f"{_ONE}/delete",
        handler=api.delete_person,
        page=_ONE,
        message="Person deleted. Their passkeys no longer work, and their sessions have ended.",
        after=_LIST,
    ),
)

"""Destinations: status, settings and actions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tocsin.credentials import ConsoleRole
from tocsin.delivery import DestinationState
from tocsin.model import EventType
from tocsin.web.console.forms import Form
from tocsin.web.console.page_request import PageRequest, select_query
from tocsin.web.console.pages import ConsoleAction, ConsolePage
from tocsin.web.console.settings_form import (
    SettingField,
    build_fields,
    find_errors,
    group_fields,
    read_settings,
)
from tocsin.web.console.stop_form import STOP_LENGTHS, read_stop
from tocsin.web.problems import ProblemError
from tocsin.web.routes.deliveries import get_delivery, list_deliveries
from tocsin.web.routes.destination_tests import send_settings_test, send_test_event
from tocsin.web.routes.destinations import (
    create_destination,
    delete_destination,
    get_destination,
    list_destinations,
    resume_destination,
    update_destination,
)
from tocsin.web.routes.plugins import list_channels

_SECTION = "destinations"
_PAGE = "/destinations/{name}"
_SETTINGS = f"{_PAGE}/settings"
_NEW = "/admin/new-destination"
_TEST = "/admin/destination-test"


async def show_destinations(request: PageRequest) -> Mapping[str, Any]:
    """Return one page of the destinations with their delivery counts."""
    query = select_query(request, "state")
    cursor = select_query(request, "cursor")
    found = await request.ask(list_destinations, {}, **query, **cursor)
    names = [destination["name"] for destination in found["destinations"]]
    return {
        "found": found,
        "destinations": [await request.ask(get_destination, {"name": name}) for name in names],
        "query": query,
        "states": list(DestinationState),
        "channels": (await request.ask(list_channels))["channels"],
    }


async def load_all_destinations(request: PageRequest) -> list[Mapping[str, Any]]:
    """Return the destinations of all pages."""
    page = await request.ask(list_destinations, {}, limit="200")
    found: list[Mapping[str, Any]] = page["destinations"]
    while (cursor := page["next_cursor"]) is not None:
        page = await request.ask(list_destinations, {}, limit="200", cursor=cursor)
        found.extend(page["destinations"])
    return found


async def show_destination(request: PageRequest) -> Mapping[str, Any]:
    """Return a destination with its latest deliveries."""
    destination = await request.ask(get_destination)
    latest = await request.ask(list_deliveries, destination=destination["name"], limit="10")
    return {
        "destination": destination,
        "latest": latest,
        "failed": await _failed(request, destination["name"], latest["deliveries"]),
        "kinds": list(EventType),
        "lengths": STOP_LENGTHS,
    }


async def _failed(
    request: PageRequest, name: str, latest: Sequence[Mapping[str, Any]]
) -> Mapping[str, Any] | None:
    """Return the newest failed delivery, None if all were delivered."""
    tried = [delivery for delivery in latest if delivery["attempts"]]
    # The newest deliveries of a stopped destination have no attempts
    for state in ("dead", "on_hold"):
        if not tried:
            page = await request.ask(list_deliveries, destination=name, state=state, limit="200")
            tried = [delivery for delivery in page["deliveries"] if delivery["attempts"]]
    failed = (delivery["id"] for delivery in tried if delivery["state"] != "delivered")
    if (newest := next(failed, None)) is None:
        return None
    found: Mapping[str, Any] = await request.ask(get_delivery, {"delivery_id": newest})
    return found


async def show_settings(request: PageRequest) -> Mapping[str, Any]:
    """Return the settings form of a destination; raises ProblemError (404) without its plugin."""
    destination = await request.ask(get_destination)
    channel = await _channel(request, destination["plugin"])
    fields = build_fields(channel, destination["settings"], destination["secrets"])
    return {"destination": destination, **_form(channel, fields)}


async def show_new(request: PageRequest) -> Mapping[str, Any]:
    """Return the form of a new destination; raises ProblemError (404) without its plugin."""
    channel = await _channel(request, request.query.get("plugin", ""))
    return {"destination": None, **_form(channel, build_fields(channel, {}))}


def _form(channel: Mapping[str, Any], fields: Sequence[SettingField]) -> Mapping[str, Any]:
    return {"channel": channel, "sections": group_fields(fields), "find_errors": find_errors}


async def _channel(request: PageRequest, plugin: str) -> Mapping[str, Any]:
    for channel in (await request.ask(list_channels))["channels"]:
        if channel["plugin"] == plugin:
            found: Mapping[str, Any] = channel
            return found
    raise ProblemError(404, f"The channel plugin {plugin!r} is not enabled in plugins.toml.")


def _new(form: Form) -> Mapping[str, Any]:
    return {**form.given("name", "plugin"), "settings": read_settings(form)}


def _change(form: Form) -> Mapping[str, Any]:
    return {"settings": read_settings(form)}


async def show_test(_request: PageRequest) -> Mapping[str, Any]:
    """Return nothing: the page shows the outcome of a test."""
    return {}


def _settings_test(form: Form) -> Mapping[str, Any]:
    return {**form.given("plugin", "destination"), "settings": read_settings(form)}


def _sample(form: Form) -> Mapping[str, Any]:
    return form.given("event_type")


PAGES = (
    ConsolePage(
        path="/destinations",
        view=show_destinations,
        template="destinations.html.j2",
        section=_SECTION,
    ),
    ConsolePage(
        path=_PAGE, view=show_destination, template="destination.html.j2", section=_SECTION
    ),
    ConsolePage(
        path=_SETTINGS,
        view=show_settings,
        template="destination_form.html.j2",
        section=_SECTION,
        role=ConsoleRole.OPERATOR,
    ),
    ConsolePage(
        path=_NEW,
        view=show_new,
        template="destination_form.html.j2",
        section=_SECTION,
        role=ConsoleRole.OPERATOR,
    ),
    ConsolePage(
        path=_TEST,
        view=show_test,
        template="destination_test.html.j2",
        section=_SECTION,
        role=ConsoleRole.OPERATOR,
    ),
)
ACTIONS = (
    ConsoleAction(
        path=_NEW,
        handler=create_destination,
        page=_NEW,
        after=_PAGE,
        body=_new,
        message="Destination created. Send a test event to verify it.",
    ),
    ConsoleAction(
        path=_SETTINGS,
        handler=update_destination,
        page=_SETTINGS,
        after=_PAGE,
        body=_change,
        message="Settings saved. Queued deliveries are sent with the new settings.",
    ),
    ConsoleAction(
        path=_TEST,
        handler=send_settings_test,
        page=_TEST,
        body=_settings_test,
        message="Test event sent.",
        keeps=True,
    ),
    ConsoleAction(
        path=f"{_PAGE}/test",
        handler=send_test_event,
        page=_PAGE,
        body=_sample,
        message="Test event sent.",
        keeps=True,
    ),
    ConsoleAction(
        path=f"{_PAGE}/stop",
        handler=update_destination,
        page=_PAGE,
        body=read_stop,
        message="Destination disabled. All of its deliveries are on hold.",
    ),
    ConsoleAction(
        path=f"{_PAGE}/start",
        handler=update_destination,
        page=_PAGE,
        body=lambda _: {"enabled": True},
        message="Destination enabled. Tocsin is sending the deliveries that were on hold.",
    ),
    ConsoleAction(
        path=f"{_PAGE}/resume",
        handler=resume_destination,
        page=_PAGE,
        message="Destination resumed. Tocsin is sending the deliveries that were on hold.",
    ),
    ConsoleAction(
        path=f"{_PAGE}/delete",
        handler=delete_destination,
        page=_PAGE,
        message="Destination deleted. Its unfinished deliveries will not be sent.",
    ),
)

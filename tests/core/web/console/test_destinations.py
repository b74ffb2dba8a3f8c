"""What a person sees of destinations, and how one is set up, tested, mended and ended."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from html import unescape

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from pydantic import SecretStr

from api_server import CONFIGURATION, Api, open_api
from console import Person
from delivery_rows import add_delivery
from tocsin import Channel, Delivery, Health, Receipt
from tocsin.delivery import DestinationState, StopReason, load_destination
from tocsin.delivery.destinations.lifecycle import DestinationSpec, create_destination
from tocsin.delivery.destinations.repository import Destination, destination_to_row
from tocsin.registry import ManagedBy
from tocsin.store.tables import destinations

SECRET = "whsec_" + "QUJD" * 10
HOSTILE = "<script>alert('{{ 7 * 7 }}')</script>"
NEW = "/admin/new-destination?plugin=webhook"
PAGE = "/destinations/soar"
FORM = {
    "name": "soar",
    "plugin": "webhook",
    "text.url": "http://127.0.0.1:9/",
    "list.allow_networks": "127.0.0.0/8",
    "secret-text.secret": SECRET,
}


class Board(Channel):
    """Writes on a board."""

    class Settings(Channel.Settings):
        place: str
        size: int = 3
        by_day: bool = True
        colours: Mapping[str, str] = {}
        owner: int | str = 0
        token: SecretStr | None = None

    async def check(self) -> Health:
        return Health(detail="well")

    async def deliver(self, delivery: Delivery) -> Receipt:
        return Receipt()


@pytest.fixture
async def api(database, clock) -> AsyncIterator[Api]:
    """An API with two kinds of channel."""
    configuration = replace(CONFIGURATION, channels={**CONFIGURATION.channels, "board": Board})
    async with open_api(database, clock, configuration) as api:
        yield api


@pytest.fixture
async def soar(person) -> Person:
    """An admin who has set the destination `soar` up."""
    await person.submit(NEW, NEW, **FORM)
    return person


async def stored(api: Api, name: str = "soar") -> Destination:
    found = await api.services.database.read(load_destination, name)
    assert found is not None
    return found


async def put(api: Api, **members: object) -> None:
    """Make the destination what it would be after something that nobody does by hand."""

    def work(connection) -> None:
        destination = replace(load_destination(connection, "soar"), **members)
        connection.execute(destinations.update().values(destination_to_row(destination)))

    await api.services.database.write(work)


async def add(api: Api, managed_by: ManagedBy, **settings: object) -> None:
    """Make the destination as a file or a plugin does."""
    written = DestinationSpec("soar", "webhook", {"plugin": "webhook", **settings}, managed_by)
    await api.services.database.write(create_destination, written, "file", api.services.clock.now())


async def test_where_there_is_none_it_is_said_how_to_make_one(person):
    assert "Create one here" in await person.text("/destinations")
    assert 'action="/admin/new-destination"' in await person.html("/destinations")
    assert 'href="/destinations">Create a destination' in await person.html("/")


async def test_a_viewer_is_not_led_to_a_form(viewer):
    assert "No destinations yet." in await viewer.text("/destinations")
    assert "new-destination" not in await viewer.html("/destinations")


async def test_one_is_set_up_by_a_form_of_its_channels_settings(api, person):
    text = await person.text(NEW)
    assert "Posts each event as a signed request" in text
    assert "Enter one value per line" in text
    assert "<code>secret_url</code> is required." in await person.html(NEW)
    text = await person.submit(NEW, NEW, **FORM, **{"choices.events": "schedule-disabled"})
    assert "Destination created. Send a test event" in text
    assert "soar active" in text
    assert "set (hidden)" in text
    settings = (await stored(api)).settings
    assert settings == {
        "url": "http://127.0.0.1:9/",
        "allow_networks": ["127.0.0.0/8"],
        "events": ["schedule-disabled"],
    }


BOARD = {
    "name": "soar",
    "plugin": "board",
    "text.place": "hall",
    "number.size": "4",
    "flag.by_day": "false",
    "table.colours": "High: red\n Low : green: light ",
    "anything.owner": "17",
    "secret-text.token": "s3cret",
    "list.providers": "edge\n\nsensors\n",
    "choice.min_severity": "High",
}
WRITTEN = {
    "place": "hall",
    "size": 4,
    "by_day": False,
    "colours": {"High": "red", "Low": "green: light"},
    "owner": 17,
    "providers": ["edge", "sensors"],
    "min_severity": "High",
}


@pytest.fixture
async def board(person) -> Person:
    """An admin who has set up a destination with every shape of setting."""
    page = "/admin/new-destination?plugin=board"
    await person.submit(page, page, **BOARD)
    return person


async def change(person: Person, **fields: str) -> str:
    """Send the form of the settings; return what can be read on the page that follows."""
    return await person.submit(f"{PAGE}/settings", f"{PAGE}/settings", **fields)


async def test_every_shape_of_setting_can_be_written(api, board):
    assert (await stored(api)).settings == WRITTEN


async def test_what_is_written_stands_in_the_form_but_for_secrets(board):
    html = await board.html(f"{PAGE}/settings")
    assert "s3cret" not in html
    shown = unescape(html)
    for part in (">\nHigh: red\nLow: green: light<", ">\nedge\nsensors<", 'value="hall"'):
        assert part in shown


async def test_the_audit_log_names_what_was_changed_and_no_other_setting(admin, board):
    html = unescape(await board.html(f"{PAGE}/settings"))
    stood = dict(re.findall(r'name="(was\.[^"]+)" value="([^"]*)"', html))
    now = {name.removeprefix("was."): text for name, text in stood.items()}
    assert "was.number.size" in stood
    await change(board, **stood, **now | {"number.size": "7"})
    asked = {"action": "destination.change"}
    log = await admin.ask("GET", "/api/admin/audit", params=asked)
    assert log["entries"][0]["details"]["settings"] == ["size"]


async def test_an_empty_field_returns_to_the_default_and_keeps_a_secret(api, board):
    fields = {**BOARD, "number.size": "", "secret-text.token": "", "anything.owner": "ana"}
    await change(board, **fields)
    destination = await stored(api)
    left = {name: value for name, value in WRITTEN.items() if name != "size"}
    assert destination.settings == left | {"owner": "ana"}
    assert api.services.destinations.validator.describe_settings(destination)[1] == ["token"]


async def test_a_secret_is_taken_away(api, board):
    await change(board, **{**BOARD, "secret-text.token": "", "forget.token": "yes"})
    assert api.services.destinations.validator.describe_settings(await stored(api))[1] == []


async def test_what_only_the_file_can_set_is_not_asked(person):
    html = await person.html(NEW)
    assert "ca_file" not in html
    assert "proxy" not in html


async def test_what_is_wrong_is_said_at_its_field_and_the_rest_stays(person):
    wrong = {**FORM, "text.url": 'ftp://x"><script>', "number.concurrency": "many"}
    form = {**wrong, "choices.events": "schedule-disabled"}
    html = await person.html(NEW)
    token = html.partition('name="form_token" value="')[2].partition('"')[0]
    response = await person.post(NEW, form_token=token, **form)
    assert response.status == 422
    html = await response.text()
    assert "settings.url" in html
    assert "settings.concurrency" in html
    assert html.count("mistaken") == html.count('aria-invalid="true"') == 2
    assert 'value="soar"' in html
    assert 'value="many"' in html
    assert 'value="schedule-disabled" checked' in html
    assert "<script>" not in html
    assert SECRET not in html
    assert "The form does not keep secrets" in html


async def test_a_name_that_is_taken_is_said(soar):
    assert "A destination named 'soar' already exists." in await soar.submit(NEW, NEW, 409, **FORM)


async def test_a_channel_that_there_is_not_has_no_form(person):
    for plugin in ("carrier-pigeon", "%3Cscript%3E", ""):
        text = await person.text(f"/admin/new-destination?plugin={plugin}", 404)
        assert "is not enabled in plugins.toml" in text


async def test_the_list_says_how_each_does(api, soar, clock):
    failing = replace((await stored(api)).health, failures=12, failing_since=clock.now())
    await put(
        api,
        state=DestinationState.PAUSED,
        reason=StopReason.FAILING,
        detail="503: busy",
        health=failing,
    )
    await api.services.database.write(add_delivery, to="soar")
    text = await soar.text("/destinations")
    assert "soar webhook paused failing since 2026-11-21 12:00:00 UTC 503: busy 12 0 1" in text
    assert "soar" in await soar.text("/destinations?state=paused")
    assert "No destinations match this filter." in await soar.text("/destinations?state=disabled")


async def test_an_active_one_whose_receiver_fails_is_not_called_active(api, soar, clock):
    await put(
        api, health=replace((await stored(api)).health, failures=2, failing_since=clock.now())
    )
    await api.services.database.write(add_delivery, to="soar", tried=2)
    assert "soar webhook failing since" in await soar.text("/destinations")
    text = await soar.text(PAGE)
    assert "soar failing" in text
    assert "has failed 2 times in a row since" in text


async def test_its_page_shows_what_failed_last(api, soar):
    await api.services.database.write(add_delivery, to="soar", tried=2)
    text = await soar.text(PAGE)
    assert "Last failure retry later HTTP 503" in text
    assert "Response busy" in text
    assert "Resend 1 dead delivery" in text
    html = await soar.html(PAGE)
    assert 'href="/deliveries?destination=soar&amp;state=dead"' in html


async def test_what_failed_last_shows_behind_a_stopped_destination_too(api, soar):
    await put(api, state=DestinationState.PAUSED, reason=StopReason.FAILING, detail="503: busy")
    write = api.services.database.write
    await write(add_delivery, "pending", to="soar", tried=2)
    for _ in range(12):
        await write(add_delivery, "pending", to="soar", tried=0)
    text = await soar.text(PAGE)
    assert "Response busy" in text


async def test_what_is_dead_there_is_sent_again(api, soar):
    await api.services.database.write(add_delivery, to="soar")
    action = "/replays?destination=soar&amp;state=dead"
    text = await soar.submit(PAGE, action, destination="soar", state="dead")
    assert "dead to soar" in text


@pytest.fixture
async def receiver() -> AsyncIterator[TestServer]:
    """A receiver that answers what its path says, with something hostile."""

    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=int(request.match_info["status"]), text=HOSTILE)

    app = web.Application()
    app.router.add_post("/{status}", answer)
    async with TestServer(app) as server:
        yield server


@pytest.mark.parametrize(("status", "outcome"), [(204, "delivered"), (503, "retry later HTTP 503")])
async def test_a_test_shows_its_outcome_at_once(soar, receiver, status, outcome):
    url = str(receiver.make_url(f"/{status}"))
    await change(soar, **{**FORM, "text.url": url})
    text = await soar.submit(PAGE, f"{PAGE}/test#test", event_type="schedule-disabled")
    assert outcome in text
    assert re.search(r"HTTP \d+, \d+ ms", text)
    assert (HOSTILE in text) == (status != 204)


async def test_one_is_disabled_and_enabled(api, soar):
    assert "Destination disabled" in await soar.submit(PAGE, f"{PAGE}/stop")
    assert (await stored(api)).reason is StopReason.MANUAL
    assert "Destination enabled" in await soar.submit(PAGE, f"{PAGE}/start")
    assert (await stored(api)).state is DestinationState.ACTIVE


async def test_a_stop_that_came_by_itself_is_ended(api, soar):
    await put(api, state=DestinationState.DISABLED, reason=StopReason.GONE, detail="410: gone")
    assert "410: gone" in await soar.text(PAGE)
    await soar.submit(PAGE, f"{PAGE}/resume")
    assert (await stored(api)).state is DestinationState.ACTIVE


async def test_new_settings_end_a_stop_that_came_by_itself(api, soar):
    await put(api, state=DestinationState.PAUSED, reason=StopReason.FAILING)
    assert "Settings saved" in await change(soar, **FORM)
    assert (await stored(api)).state is DestinationState.ACTIVE


async def test_one_is_deleted_after_a_question(api, soar):
    assert 'data-sure="Delete soar and its secrets?' in await soar.html(PAGE)
    text = await soar.submit(PAGE, f"{PAGE}/delete")
    assert "Destination deleted" in text
    assert (await stored(api)).state is DestinationState.DELETED
    html = await soar.html(PAGE)
    assert html.count('method="post"') == 1  # signing out


@pytest.mark.parametrize(
    ("managed_by", "words"),
    [
        (ManagedBy.FILE, "edit the file, then apply the changes"),
        (ManagedBy.PLUGIN, "to remove the destination, disable the plugin in plugins.toml"),
    ],
)
async def test_what_others_manage_offers_only_what_can_be_done(api, person, managed_by, words):
    await add(api, managed_by, url="https://soar.example.com/", secret={"env": "SOAR_SECRET"})
    text = await person.text(PAGE)
    assert words in text
    assert "Send test event" in text
    html = await person.html(PAGE)
    for action in ("settings", "start", "resume", "delete"):
        assert f"{PAGE}/{action}" not in html
    stopped = await person.submit(PAGE, f"{PAGE}/stop", until="", duration="PT4H", reason="Noise")
    assert "will be enabled on 2026-11-21 16:00:00 UTC . Reason: Noise" in stopped
    assert "&lt;code" not in await person.html(PAGE)
    assert "soar active" in await person.submit(PAGE, f"{PAGE}/start")
    assert "SOAR_SECRET" not in html


async def test_what_the_file_names_no_more_can_be_deleted(api, person):
    await add(api, ManagedBy.FILE, url="https://soar.example.com/")
    await put(api, state=DestinationState.DISABLED, reason=StopReason.REMOVED)
    await person.submit(PAGE, f"{PAGE}/delete")
    assert (await stored(api)).state is DestinationState.DELETED


@pytest.mark.parametrize(
    ("managed_by", "words"),
    [
        (ManagedBy.FILE, "managed by plugins.toml. Edit the file, then apply the changes."),
        (ManagedBy.PLUGIN, "managed by a plugin. To remove the destination, disable the plugin"),
    ],
)
async def test_settings_of_others_have_no_form(api, person, managed_by, words):
    await add(api, managed_by, url="https://soar.example.com/")
    assert words in await person.text(f"{PAGE}/settings")
    assert 'name="text.url"' not in await person.html(f"{PAGE}/settings")


async def test_hostile_settings_are_text(api, person):
    await add(api, ManagedBy.FILE, url=HOSTILE, headers={"X": HOSTILE}, when=HOSTILE)
    html = await person.html(PAGE)
    assert "<script>alert" not in html
    assert HOSTILE in unescape(html)


async def test_a_destination_that_there_is_not_has_no_page(viewer):
    for name in ("none", "a%2Fb", "%00"):
        assert "Not Found" in await viewer.text(f"/destinations/{name}", 404)


async def test_a_viewer_sees_everything_and_changes_nothing(api, soar, viewer):
    text = await viewer.text(PAGE)
    assert "http://127.0.0.1:9/" in text
    assert (await viewer.html(PAGE)).count('method="post"') == 1  # signing out
    for page in (NEW, f"{PAGE}/settings"):
        assert "You need the operator role" in await viewer.text(page, 403)
    for action in ("stop", "start", "resume", "delete", "test", "settings"):
        assert (await viewer.post(f"{PAGE}/{action}")).status == 403
    assert (await stored(api)).state is DestinationState.ACTIVE

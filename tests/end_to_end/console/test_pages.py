"""The console in a real browser, on a service of its own process."""

from __future__ import annotations

import asyncio
import re
from contextlib import AbstractAsyncContextManager
from typing import Any
from urllib.parse import quote

import pytest
import pytest_asyncio
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Page, Route, expect
from tests.end_to_end.service import Receiver, Sensor, Service, until

from browser import WCAG, needs_chromium, open_window, sign_in
from tocsin.web.console.routes import PAGES

pytestmark = [needs_chromium, pytest.mark.asyncio(loop_scope="package")]
HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>'\"{{7*7}}"
LISTS = [
    f"{page.path}?plugin=webhook" if page.path == "/admin/new-destination" else page.path
    for page in PAGES
    if "{" not in page.path
]
WITH_DATA = [
    *("/incidents/1", "/incidents/1/alerts", "/destinations/soc", "/destinations/soc/settings"),
    *("/graph?entity=198.51.100.7", "/search?q=198.51.100.7", "/providers/edge/coverage"),
    *("/graph/path?from=198.51.100.7&to=192.0.2.10", "/admin/plugins/webhook"),
]
KINDS = (
    *("investigations", "deliveries", "quarantine", "schedules"),
    *("admin/people", "admin/api-keys", "admin/api-clients"),
)
CREATION = (
    ("investigations", "start", "what of 198.51.100.7?"),
    ("schedules", "create", "hunt", "--query", "what of 198.51.100.7?", "--interval", "7d"),
    ("people", "create", "noor", "--role", "analyst"),
    ("keys", "create", "playbooks", "--scope", "incidents:read"),
    ("clients", "create", "soar", "--scope", "incidents:read"),
)
ATTRIBUTES = "[...document.querySelectorAll('main *')].flatMap(it => it.getAttributeNames())"
UNDELIVERED = re.compile("undelivered events?, last 24 hours")
PHONE = {"width": 360, "height": 800}
SCREENS = [
    pytest.param(
        {"color_scheme": scheme, "viewport": {"width": width, "height": 800}},
        id=f"{scheme}-{width}",
    )
    for scheme in ("light", "dark")
    for width in (390, 1024, 1440)
]


@pytest.mark.full
async def test_a_failing_destination_is_found_mended_and_what_is_dead_replayed(
    window: Page, receiver: Receiver, sensor: Sensor
):
    receiver.statuses = [500] * 40
    sensor.write(1)
    await window.get_by_role("link", name=UNDELIVERED).wait_for()
    row = window.locator("#destinations").get_by_role("row", name="soc")
    await expect(row.locator('[data-label="Dead"]')).to_have_text("1", timeout=20_000)
    await row.get_by_role("link", name="soc").click()
    await expect(window.get_by_role("main")).to_contain_text("500")
    receiver.statuses = []
    await window.get_by_role("button", name=re.compile("test", re.IGNORECASE)).first.click()
    await expect(window.locator("#test")).to_contain_text("HTTP 204")
    await window.goto("/deliveries?state=dead")
    await window.get_by_role("rowheader").get_by_role("link").first.click()
    await window.get_by_role(
        "button", name=re.compile("resend|replay", re.IGNORECASE)
    ).first.click()
    await until(lambda: sensor.written in receiver.numbers)


@pytest.mark.full
async def test_a_key_is_made_shown_once_and_works(window: Page):
    await make_key(window, "playbooks", "of the SOAR")
    key = await window.locator(".secret code").first.text_content()
    assert key is not None
    answer = await window.request.get("/api/v1/incidents", headers={"X-API-Key": key})
    assert answer.status == 200
    await window.goto("/admin/api-keys")
    await expect(window.get_by_role("main")).to_contain_text("playbooks")
    assert key not in await window.content()


@pytest.mark.full
async def test_an_investigation_is_followed_while_it_runs(window: Page):
    await window.goto("/incidents/1")
    main = window.get_by_role("main")
    await main.get_by_text("Investigate", exact=True).first.click()
    await window.get_by_role("button", name="Investigate").click()
    await window.wait_for_url("**/investigations/ses_*")
    await expect(main).to_contain_text("completed", timeout=30_000)
    await expect(window.get_by_role("heading", name=re.compile("Findings"))).to_be_visible()
    await window.get_by_label("Follow-up question").fill("go deeper")
    await window.get_by_role("button", name="Ask").click()
    await expect(main).to_contain_text("go deeper")


@pytest.mark.full
async def test_hostile_text_is_text_wherever_it_is_shown(
    window: Page, service: Service, sensor: Sensor
):
    alert = sensor.record().replace(b"EXAMPLE Exploit attempt", _json_text(HOSTILE))
    with sensor.path.open("ab") as feed:
        feed.write(alert)
    await make_key(window, HOSTILE[:60], HOSTILE)
    await service.command("investigations", "start", f"what of {HOSTILE}?")
    asked = f"?q={quote(HOSTILE)}", f"?entity={quote(HOSTILE)}", f"?subject={quote(HOSTILE)}"
    pages = zip(("/search", "/graph", "/deliveries"), asked, strict=True)
    number = sensor.written
    await expect_incident(window, number)
    for path in [*LISTS, f"/incidents/{number}", *map("".join, pages)]:
        await window.goto(path)
        heading = window.get_by_role("heading", level=1)
        await expect(heading).to_be_visible()
        assert await window.locator("main img, main script").count() == 0, path
        assert "onerror" not in str(await window.evaluate(ATTRIBUTES)), path


async def make_key(window: Page, name: str, description: str) -> None:
    """Make an API key that may read incidents."""
    await window.goto("/admin/api-keys")
    form = window.get_by_role("form", name="New API key")
    if not await form.is_visible():
        await window.get_by_role("heading", name="New API key").click()
    await form.get_by_label("Name").fill(name)
    await form.get_by_label("Description").fill(description)
    await form.get_by_label("incidents:read").check()
    await form.get_by_role("button").click()
    await expect(window.locator(".secret code").first).to_be_visible()


async def expect_incident(window: Page, number: int) -> None:
    """Return once the list has an incident."""
    async with asyncio.timeout(20):
        while f"/incidents/{number}" not in await window.content():
            await window.goto("/incidents")


@pytest.mark.full  # tests/core/web/console reads what the server sends
async def test_every_page_can_be_read_without_scripts(service: Service, token: str, browser: Any):
    async with open_window(browser, service.url, java_script_enabled=False) as page:
        await sign_in(page, token)
        for path in [*LISTS, "/incidents/1"]:
            await visit(page, path)
            await expect(page.get_by_role("heading", level=1)).to_be_visible()
            await expect(page.get_by_role("navigation", name="Sections")).to_be_visible()


async def test_the_pages_that_are_opened_most_are_accessible_and_fit_a_phone(
    service: Service, token: str, browser: Any
):
    often = ["/", "/incidents", "/incidents/1", "/deliveries", "/destinations/soc", "/sign-in"]
    await expect_accessible(open_window(browser, service.url, viewport=PHONE), token, often)


@pytest.mark.full
@pytest.mark.parametrize("screen", SCREENS)
async def test_pages_are_accessible_and_fit(
    service: Service, details: list[str], token: str, browser: Any, screen: dict[str, Any]
):
    paths = [*LISTS, *WITH_DATA, *details, "/sign-in", "/sign-in/link", "/sign-in/new-passkey"]
    await expect_accessible(open_window(browser, service.url, **screen), token, paths)


@pytest_asyncio.fixture(scope="package", loop_scope="package")
async def details(service: Service, sensor: Sensor, token: str, browser: Any) -> list[str]:
    """The first page of each kind that a list leads to, and the pages that these lead to."""
    with sensor.path.open("ab") as feed:
        feed.write(b'{"event_type": "alert", "alert": {}}\n')
    service.environment["TOCSIN_ADMIN_TOKEN"] = token
    for command in CREATION:
        status, _, errors = await service.command(*command)
        assert status == 0, errors
    async with open_window(browser, service.url) as page:
        await sign_in(page, token)
        found = {kind: await find_first(page, kind) for kind in KINDS}
        steps = f"{found['investigations']}/steps"
        step = await find_first(page, steps.removeprefix("/"))
    body, change = f"{found['deliveries']}/body", f"{found['schedules']}/change"
    return [*found.values(), steps, step, body, change]


async def find_first(page: Page, kind: str) -> str:
    """Return the address of the first page that a list leads to, once there is one."""
    link = page.locator(f"main th a[href^='/{kind}/']").first
    async with asyncio.timeout(20):
        while not await link.count():
            await page.goto(f"/{kind}")
    address = await link.get_attribute("href")
    assert address is not None
    return address


async def expect_accessible(
    window: AbstractAsyncContextManager[Page], token: str, paths: list[str]
) -> None:
    """Return if axe finds nothing on these pages, and none is wider than the window."""
    async with window as page:
        await sign_in(page, token)
        for path in paths:
            await visit(page, path)
            found = await Axe().run(page, options=WCAG)
            assert found.violations_count == 0, f"{path}: {found.generate_report()}"
            wide = await page.evaluate("document.documentElement.scrollWidth")
            assert page.viewport_size is not None
            assert wide <= page.viewport_size["width"], path


@pytest.mark.full
async def test_nothing_moves_while_a_page_is_opened_on_a_phone(
    service: Service, token: str, browser: Any
):
    options = {"viewport": PHONE}
    async with open_window(browser, service.url, **options) as page:
        await sign_in(page, token)
        await page.add_init_script(
            "window.moved = 0; new PerformanceObserver((list) => {"
            " for (const shift of list.getEntries()) window.moved += shift.value;"
            "}).observe({ type: 'layout-shift', buffered: true });"
        )
        await page.route("**/console.js*", after_the_first_paint)
        for path in ["/", "/incidents", "/incidents/1"]:
            await visit(page, path)
            await expect(page.locator(".menu.ready")).to_have_count(1)
            await page.evaluate(
                "new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn)))"
            )
            assert await page.evaluate("window.moved") < 0.1, path


async def after_the_first_paint(route: Route) -> None:
    await route.request.frame.evaluate(
        "new Promise((painted) => new PerformanceObserver(() => painted())"
        ".observe({ type: 'paint', buffered: true }))"
    )
    await route.continue_()


async def visit(page: Page, path: str) -> None:
    """Go to a page that is there."""
    response = await page.goto(path)
    assert response is not None
    assert response.status == 200, path


def _json_text(text: str) -> bytes:
    return text.replace("\\", "\\\\").replace('"', '\\"').encode()

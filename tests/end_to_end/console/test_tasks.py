"""Common tasks in a real browser, with the clicks that docs/decisions/0013-console.md states."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from playwright.async_api import Locator, Page, expect
from tests.end_to_end.service import Receiver, Sensor, until

from browser import needs_chromium

# `test_scripts.py` and `tests/core/web/console` test the parts of these tasks
pytestmark = [needs_chromium, pytest.mark.full, pytest.mark.asyncio(loop_scope="package")]


@dataclass
class Mouse:
    """Clicks, and counts them."""

    clicks: int = 0

    async def click(self, target: Locator) -> None:
        self.clicks += 1
        await target.click()

    async def choose(self, field: Locator, value: str) -> None:
        """Open a list and choose from it."""
        self.clicks += 2
        await field.select_option(value)


@pytest.fixture
def mouse() -> Mouse:
    return Mouse()


async def open_list(window: Page, sensor: Sensor, mouse: Mouse | None) -> Locator:
    """Return the rows of the incident list, once ten new incidents are in it."""
    sensor.write(10)
    await window.goto("/")
    rows = window.locator(".worklist tbody tr")
    link = window.get_by_role("navigation").get_by_role("link", name="Incidents")
    if mouse is None:
        await tab_to(link)
        await window.keyboard.press("Enter")
    else:
        await mouse.click(link)
    await expect(rows.first).to_contain_text(f"#{sensor.written}", timeout=20_000)
    return rows


async def tab_to(link: Locator) -> None:
    """Press Tab until a link has the focus."""
    for _ in range(20):
        await link.page.keyboard.press("Tab")
        if await link.evaluate("link => link === document.activeElement"):
            return
    pytest.fail("Tab does not lead to the link")


async def test_ten_incidents_get_a_disposition(window: Page, sensor: Sensor, mouse: Mouse):
    rows = await open_list(window, sensor, mouse)
    for row in range(10):
        await mouse.click(rows.nth(row).get_by_role("checkbox"))
    await mouse.choose(window.locator(".selection [name=disposition]"), "false-positive")
    await mouse.click(window.get_by_role("button", name="Apply"))
    await expect(window.get_by_role("status").first).to_contain_text("10 of 10 selected")
    assert mouse.clicks == 14


async def test_ten_incidents_get_a_disposition_without_a_mouse(window: Page, sensor: Sensor):
    await open_list(window, sensor, None)
    for key in "jx" * 10 + "e":
        await window.keyboard.press(key)
    await window.keyboard.type("fal")
    await window.keyboard.press("Tab")
    await window.keyboard.type("scan")
    await window.keyboard.press("Enter")
    await expect(window.get_by_role("status").first).to_contain_text("10 of 10 selected")


async def test_all_incidents_of_a_page_are_selected_at_once(
    window: Page, sensor: Sensor, mouse: Mouse
):
    rows = await open_list(window, sensor, mouse)
    await mouse.click(window.get_by_label("Select all incidents on this page"))
    await expect(window.locator(".worklist tbody :checked")).to_have_count(await rows.count())


async def test_why_an_alert_did_not_arrive_and_how_a_destination_is_stopped(
    window: Page, sensor: Sensor, receiver: Receiver, mouse: Mouse
):
    receiver.statuses = [500] * 40
    sensor.write(1)
    await window.goto("/")
    arrivals = window.locator("#arrivals").get_by_role("rowheader").get_by_role("link")
    await expect(arrivals.nth(1)).to_be_visible(timeout=20_000)
    await mouse.click(arrivals.nth(1))
    await expect(window.get_by_role("main")).to_contain_text("500")
    assert mouse.clicks == 1

    mouse.clicks = 0
    await window.goto("/")
    await mouse.click(window.locator("#destinations").get_by_role("link", name="soc"))
    await mouse.click(window.locator("summary", has_text="Disable"))
    await mouse.click(window.get_by_role("button", name="Disable soc"))
    await expect(window.get_by_role("main")).to_contain_text("soc was disabled by")
    assert mouse.clicks == 3
    receiver.statuses = []
    await window.get_by_role("button", name="Enable").click()
    sensor.write(1)
    await until(lambda: sensor.written in receiver.numbers)


async def test_everything_about_an_address_is_found(window: Page, mouse: Mouse):
    await window.goto("/")
    await window.keyboard.press("/")
    await window.keyboard.type("198.51.100.7")
    await window.keyboard.press("Enter")
    entity = window.get_by_role("rowheader", name="198.51.100.7")
    await mouse.click(entity.get_by_role("link"))
    await expect(window.get_by_role("heading", level=1)).to_contain_text("198.51.100.7")
    await expect(window.locator("svg.neighbors")).to_be_visible()
    assert mouse.clicks == 1

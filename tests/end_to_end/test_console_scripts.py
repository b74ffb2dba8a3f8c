"""What the console's script does beyond what pages show without it, in a real browser."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Page, expect

from browser import needs_chromium, open_browser, open_window, sign_in

from .service import Service

pytestmark = [
    needs_chromium,
    pytest.mark.parametrize("database_url", ["sqlite"], indirect=True),
    pytest.mark.timeout(60),
]
_HIDE = """hidden => {
  Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""
_COUNT = """() => {
  window.counted = { open: 0, drawn: 0 };
  const Source = window.EventSource;
  window.EventSource = class extends Source {
    constructor(...given) { super(...given); window.counted.open += 1; }
    close() { super.close(); window.counted.open -= 1; }
  };
  document.addEventListener("DOMContentLoaded", () => {
    const watched = new MutationObserver(() => { window.counted.drawn += 1; });
    watched.observe(document.getElementById("main"), { childList: true });
  });
}"""


@pytest.fixture
async def window(service: Service) -> AsyncIterator[Page]:
    """A page of a browser in which an admin has signed in."""
    await service.start()
    _, token, _ = await service.command("admin", "token")
    async with open_browser() as browser, open_window(browser, service.url) as page:
        await sign_in(page, token.strip())
        yield page


async def test_a_double_click_makes_one_investigation(window: Page):
    await window.goto("/investigations")
    await window.get_by_label("What to find out").fill("what of 203.0.113.9?")
    await window.get_by_role("button", name="Investigate").dblclick()
    await window.wait_for_url("**/investigations/ses_*")
    await window.goto("/investigations")
    await expect(window.get_by_role("row")).to_have_count(2)  # with the heads


@pytest.mark.full
async def test_a_page_in_the_background_holds_no_connection(window: Page):
    await window.add_init_script(f"({_COUNT})()")
    await window.goto("/schedules")
    await window.wait_for_function("window.counted.open === 1")
    await window.evaluate(_HIDE, True)
    assert await window.evaluate("window.counted.open") == 0
    await window.evaluate(_HIDE, False)
    assert await window.evaluate("window.counted.open") == 1


@pytest.mark.full
async def test_what_is_there_already_is_not_drawn_again(window: Page):
    await window.add_init_script(f"({_COUNT})()")
    async with window.expect_response("**/live/schedules*"):
        await window.goto("/schedules")
    await window.wait_for_timeout(1_000)
    assert await window.evaluate("window.counted.drawn") == 0

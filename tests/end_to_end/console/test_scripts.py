"""What the console's script does beyond what pages show without it, in a real browser."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from browser import needs_chromium

pytestmark = [needs_chromium, pytest.mark.asyncio(loop_scope="package")]
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


async def test_a_double_click_makes_one_investigation(window: Page):
    await window.goto("/investigations")
    question = window.get_by_label("Question")
    if not await question.is_visible():
        await window.get_by_text("New investigation").click()
    await question.fill("what of 203.0.113.9?")
    await window.get_by_role("button", name="Investigate").dblclick()
    await window.wait_for_url("**/investigations/ses_*")
    await window.goto("/investigations")
    await expect(window.get_by_role("row", name="what of 203.0.113.9?")).to_have_count(1)


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

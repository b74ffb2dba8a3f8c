"""What the console's script does beyond what pages show without it, in a real browser."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any

import pytest
import pytest_asyncio
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Page, expect
from tests.end_to_end.service import SECRET, Sensor, Service

from browser import WCAG, needs_chromium, open_window, sign_in

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


async def test_a_form_whose_settings_were_tested_can_be_tested_again_and_saved(window: Page):
    await window.goto("/admin/new-destination?plugin=webhook")
    await window.get_by_label("Name").first.fill("queue")
    await window.get_by_label("URL", exact=True).fill("http://127.0.0.1:9/")
    await window.get_by_label("Secret", exact=True).fill(SECRET)
    for _ in range(2):
        async with window.expect_popup() as opened:
            await window.get_by_role("button", name="Send test event").click()
        tab = await opened.value
        await expect(tab.get_by_role("main")).to_contain_text("allow_networks")
        await tab.close()
    await window.get_by_role("button", name="Create destination").click()
    await expect(window.get_by_role("main")).to_contain_text("1 error in the body")


@pytest.mark.full
async def test_a_sign_in_link_signs_in_by_a_click_and_leaves_the_address(
    service: Service, browser: Any
):
    status, link, errors = await service.command("admin", "sign-in-link")
    assert status == 0, errors
    async with open_window(browser, service.url) as page:
        await page.goto(f"/sign-in/link#{link.strip().partition('#')[2]}")
        assert page.url.endswith("/sign-in/link")
        await page.get_by_role("button", name="Sign in").click()
        await page.get_by_role("heading", name="Overview").wait_for()


@pytest.mark.full
async def test_a_page_in_the_background_holds_no_connection(window: Page):
    await window.add_init_script(f"({_COUNT})()")
    await window.goto("/schedules")
    await window.wait_for_function("window.counted.open === 1")
    await window.evaluate(_HIDE, True)
    assert await window.evaluate("window.counted.open") == 0
    await window.evaluate(_HIDE, False)
    assert await window.evaluate("window.counted.open") == 1


async def test_a_page_that_comes_back_after_the_sign_out_leads_to_the_sign_in(window: Page):
    await window.goto("/schedules")
    await window.evaluate(_HIDE, True)
    await window.context.clear_cookies()
    await window.evaluate(_HIDE, False)
    await window.wait_for_url(re.compile(r"/sign-in\?next=/schedules$"))


@pytest.mark.full
async def test_what_is_there_already_is_not_drawn_again(window: Page):
    await window.add_init_script(f"({_COUNT})()")
    async with window.expect_response("**/live/schedules*"):
        await window.goto("/schedules")
    await window.wait_for_timeout(1_000)
    assert await window.evaluate("window.counted.drawn") == 0


@pytest_asyncio.fixture(loop_scope="package")
async def darwin(service: Service, token: str, browser: Any) -> AsyncIterator[Page]:
    """A page of an admin in Darwin, nine and a half hours ahead of UTC."""
    zone = {"timezone_id": "Australia/Darwin", "locale": "en-GB"}
    async with open_window(browser, service.url, **zone) as page:
        await sign_in(page, token)
        yield page


AHEAD = timedelta(hours=9, minutes=30)


def local(utc: str) -> str:
    """Return the local time in Darwin at a time as the server writes it."""
    return f"{datetime.fromisoformat(utc[:19]) + AHEAD:%Y-%m-%d %H:%M:%S}"


async def test_every_time_is_in_the_zone_of_the_viewer_with_utc_on_hover(darwin: Page):
    await darwin.goto("/incidents/1")
    for time in await darwin.locator("main time").all():
        title = await time.get_attribute("title")
        assert title.endswith(" UTC")
        assert await time.text_content() == local(title)
    await expect(darwin.locator(".clock")).to_contain_text("your time zone (Australia/Darwin)")
    assert not re.search(r":\d\d(Z| UTC)", await darwin.locator("main").inner_text())


async def test_the_axis_and_the_dots_of_a_chart_are_in_the_zone_of_the_viewer(darwin: Page):
    await darwin.goto("/incidents/1")
    chart = darwin.locator("svg.timeline")
    await expect(chart.locator(".zone")).to_have_text("Australia/Darwin")
    tick = chart.locator(".time").first
    utc = await tick.locator("title").text_content()
    assert local(utc)[11:16] in await tick.evaluate("tick => tick.firstChild.data")
    title = await chart.locator(".dot title").first.text_content()
    utc, *_ = re.findall(r"\(([^)]* UTC)\)", title)
    assert local(utc) in title


async def test_a_filter_takes_the_time_of_the_viewer_and_sends_utc(darwin: Page):
    await darwin.goto("/deliveries?since=2026-11-21T20:00:00Z")
    since = darwin.get_by_label("Since (Australia/Darwin)")
    assert await since.input_value() == "2026-11-22T05:30"
    assert await since.get_attribute("title") == "2026-11-21 20:00:00 UTC"
    await since.fill("2026-11-22T07:00")
    await darwin.get_by_role("button", name="Filter").click()
    await darwin.wait_for_url("**since=2026-11-21T21%3A30%3A00Z*")
    assert await since.input_value() == "2026-11-22T07:00"


@pytest.mark.full
async def test_incidents_are_triaged_with_the_keyboard_alone(window: Page):
    await window.goto("/incidents")
    await window.keyboard.press("?")
    await expect(window.locator(".keys kbd").first).to_be_in_viewport()
    await window.keyboard.press("Escape")
    await expect(window.locator(".keys kbd").first).to_be_hidden()
    for key in "jxjxa":
        await window.keyboard.press(key)
    await expect(window.locator(".selection [name=assignee]")).to_be_focused()
    await window.keyboard.press("Escape")
    await window.keyboard.press("e")
    await expect(window.locator(".worklist :checked")).to_have_count(2)
    await expect(window.locator(".selection [name=disposition]")).to_be_focused()
    await window.keyboard.type("dup")
    await window.keyboard.press("Tab")
    await window.keyboard.type("of #1")
    await window.keyboard.press("Enter")
    result = window.get_by_role("status").first
    await expect(result).to_contain_text("2 of 2 selected incidents")
    await expect(result).to_be_focused()
    await window.goto("/incidents?disposition=duplicate")
    await expect(window.locator(".worklist tbody tr")).to_have_count(2)


@pytest.mark.full
async def test_after_a_triage_the_keys_continue_where_the_user_was(window: Page):
    await window.goto("/incidents?sort=occurred")
    third = await window.locator(".worklist tbody th a").nth(2).get_attribute("href")
    for key in "jjxa":
        await window.keyboard.press(key)
    await window.keyboard.type("ben")
    await window.keyboard.press("Enter")
    await expect(window.get_by_role("status").first).to_be_focused()
    await window.wait_for_load_state()
    await window.keyboard.press("j")
    await expect(window.locator(f'.worklist a[href="{third}"]')).to_be_focused()


async def open_newest(window: Page, sensor: Sensor, count: int) -> None:
    """Open the list with new incidents at its top."""
    sensor.write(count)
    await window.goto("/incidents?sort=occurred")
    row = window.locator(".worklist tbody tr").first
    await expect(row).to_contain_text(f"#{sensor.written}", timeout=20_000)


@pytest.mark.full
async def test_a_key_acknowledges_the_current_incident_or_the_selected_ones(
    window: Page, sensor: Sensor
):
    result = window.get_by_role("status").first
    await open_newest(window, sensor, 3)
    await window.keyboard.press("y")
    for key in "jy":
        await window.keyboard.press(key)
    await expect(result).to_contain_text("1 of 1 selected incident updated")
    await window.wait_for_load_state()
    for key in "jxjxy":
        await window.keyboard.press(key)
    await expect(result).to_contain_text("2 of 2 selected incidents updated")


@pytest.mark.full
async def test_the_result_of_a_bulk_retry_has_the_focus_and_leaves_the_address(window: Page):
    await window.goto("/quarantine?provider=edge&retried=2&message=post-quarantine-retry")
    result = window.get_by_role("status").first
    await expect(result).to_contain_text("2 of 2 selected records retried")
    await expect(result).to_be_focused()
    assert window.url.endswith("/quarantine?provider=edge")


async def test_the_page_of_an_incident_has_keys(window: Page, sensor: Sensor):
    await open_newest(window, sensor, 1)
    links = window.locator(".worklist tbody th a")
    first, second = [await links.nth(row).get_attribute("href") for row in range(2)]
    await window.keyboard.press("j")
    await window.keyboard.press("Enter")
    await window.wait_for_url(f"**{first}")
    await window.keyboard.press("y")
    await expect(window.locator("#triage")).to_contain_text("Undo acknowledgement")
    await expect(window.get_by_role("status").first).to_be_focused()
    assert window.url.endswith(first)
    await window.wait_for_load_state()
    for key in "y?":
        await window.keyboard.press(key)
    await expect(window.locator(".keys kbd").first).to_be_in_viewport()
    await expect(window.locator("#triage")).to_contain_text("Undo acknowledgement")
    await window.keyboard.press("e")
    await expect(window.locator("#triage [name=disposition]")).to_be_focused()
    await window.keyboard.press("Escape")
    await window.keyboard.press("a")
    await expect(window.get_by_label("Assignee")).to_be_focused()
    await window.keyboard.type("jk")
    await window.keyboard.press("Escape")
    await window.keyboard.press("j")  # Playwright cancels the dialog
    await expect(window.get_by_label("Assignee")).to_have_value("jk")
    await window.get_by_label("Assignee").fill("")
    await window.keyboard.press("Escape")
    await window.keyboard.press("j")
    await window.wait_for_url(f"**{second}")
    await window.keyboard.press("k")
    await window.wait_for_url(f"**{first}")


async def test_the_page_of_an_incident_is_live_and_keeps_what_is_typed(
    window: Page, service: Service, token: str, browser: Any
):
    await window.goto("/incidents/1")
    triage, changed = window.locator("#triage"), window.locator(".changed")
    async with open_window(browser, service.url) as other:
        await sign_in(other, token)
        await add_comment(other, "asked the owner")
        await expect(triage).to_contain_text("asked the owner", timeout=20_000)
        await window.get_by_label("Comment").fill("it is a scan")
        await window.get_by_text("Investigate", exact=True).first.click()
        await window.evaluate("window.scrollTo(0, 0)")
        await window.wait_for_timeout(2_000)
        await expect(changed).to_be_hidden()
        await add_comment(other, "the owner agrees")
        await expect(changed).to_be_visible(timeout=20_000)
        assert (await Axe().run(window, options=WCAG)).violations_count == 0
    await expect(window.get_by_label("Comment")).to_have_value("it is a scan")
    await expect(triage).not_to_contain_text("the owner agrees")
    await window.get_by_label("Comment").fill("")
    await window.get_by_label("Comment").blur()
    await window.evaluate("window.scrollTo(0, 0)")
    await expect(triage).to_contain_text("the owner agrees", timeout=20_000)
    await expect(changed).to_be_hidden()


async def test_what_is_typed_stays_when_the_session_ends(window: Page):
    await window.goto("/incidents/1")
    await window.get_by_label("Comment").fill("it is a scan")
    await window.evaluate(_HIDE, True)
    await window.context.clear_cookies()
    await window.evaluate(_HIDE, False)
    await expect(window.locator(".changed")).to_be_visible()
    await expect(window.get_by_label("Comment")).to_have_value("it is a scan")
    await window.locator(".changed").get_by_role("link").click()
    await window.wait_for_url(re.compile("/sign-in"))


@pytest.mark.full
async def test_a_live_page_keeps_open_forms_with_their_input_and_their_focus(window: Page):
    await window.goto("/providers")
    read_at = window.locator("#edge dd time").first
    before = await read_at.text_content()
    form = window.get_by_role("form", name="Disable edge")
    opener = window.locator("#stop-edge summary")
    await opener.press("Enter")
    await expect(read_at).not_to_have_text(before or "", timeout=20_000)
    await expect(form).to_be_visible()
    await expect(opener).to_be_focused()
    await form.get_by_label("Reason").fill("it floods us")
    await form.get_by_label("Reason").blur()
    await expect(window.locator(".changed")).to_be_visible(timeout=20_000)
    await expect(form.get_by_label("Reason")).to_have_value("it floods us")


async def add_comment(page: Page, text: str) -> None:
    """Add a comment to the first incident."""
    await page.goto("/incidents/1")
    await page.get_by_label("Comment").fill(text)
    await page.get_by_role("button", name="Add comment").click()
    await expect(page.locator("#triage")).to_contain_text(text)


@pytest.mark.full
async def test_the_incident_list_is_live_and_keeps_its_rows_while_some_are_selected(
    window: Page, sensor: Sensor
):
    await window.goto("/incidents")
    rows = window.locator(".worklist tbody tr")
    count = await rows.count()
    box = rows.first.get_by_role("checkbox")
    await box.check()
    sensor.write(1)
    await window.wait_for_timeout(8_000)
    await expect(rows).to_have_count(count)
    await expect(box).to_be_checked()
    await box.uncheck()
    await box.blur()
    await expect(rows).to_have_count(count + 1, timeout=20_000)

"""Passkeys in a real browser, with its virtual authenticator."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Page, expect
from tests.end_to_end.service import Service

from browser import needs_chromium, open_window

pytestmark = [needs_chromium, pytest.mark.asyncio(loop_scope="package")]
AUTHENTICATOR = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}


@pytest_asyncio.fixture(loop_scope="package")
async def device(service: Service, browser: Any) -> AsyncIterator[Page]:
    """A page of a browser with an authenticator, at the address of the links."""
    async with open_window(browser, service.environment["TOCSIN_BASE_URL"]) as page:
        session = await page.context.new_cdp_session(page)
        await session.send("WebAuthn.enable")
        await session.send("WebAuthn.addVirtualAuthenticator", {"options": AUTHENTICATOR})
        yield page


@pytest_asyncio.fixture(loop_scope="package")
async def link(service: Service, token: str) -> AsyncIterator[str]:
    """The link of a new person."""
    service.environment["TOCSIN_ADMIN_TOKEN"] = token
    status, link, errors = await service.command("people", "create", "ben", "--role", "analyst")
    assert status == 0, errors
    yield link.strip()
    status, _, errors = await service.command("people", "delete", "ben")
    assert status == 0, errors


async def expect_accessible(page: Page) -> None:
    found = await Axe().run(page)
    assert found.violations_count == 0, found.generate_report()


async def test_a_person_creates_a_passkey_signs_out_and_signs_in(device: Page, link: str):
    await device.goto(link)
    assert device.url.endswith("/sign-in/new-passkey")  # the code has left the address
    await expect_accessible(device)
    await device.get_by_role("button", name="Create a passkey").click()
    await device.get_by_role("heading", name="Overview").wait_for()
    await expect(device.get_by_role("link", name="ben")).to_be_visible()
    await device.get_by_role("button", name="Sign out").click()
    await device.get_by_role("button", name="Sign in with a passkey").wait_for()
    await expect_accessible(device)
    await device.goto("/schedules")
    await device.get_by_role("button", name="Sign in with a passkey").click()
    await device.get_by_role("heading", name="Schedules").wait_for()
    await device.goto("/my-passkeys")
    await expect_accessible(device)
    await device.get_by_role("button", name="Create a passkey").click()
    await expect(device.get_by_role("alert")).to_contain_text("already has a passkey for you")


@pytest.mark.full  # tests/core/web/console/test_people.py reads the page without a browser
async def test_an_admin_adds_and_deletes_a_person_with_the_keyboard_alone(window: Page):
    await window.emulate_media(color_scheme="dark")
    await window.set_viewport_size({"width": 390, "height": 800})
    await window.goto("/admin/people")
    form = window.get_by_role("form", name="New person")
    if not await form.is_visible():
        await window.locator("#new summary").press("Enter")
    await form.get_by_label("Name").press_sequentially("eve")
    await form.get_by_label("Role").press("End")
    await form.get_by_label("Name").press("Enter")
    await expect(window.locator(".secret code")).to_contain_text("/sign-in/new-passkey#")
    await expect_accessible(window)
    await window.get_by_role("link", name="eve").press("Enter")
    await window.get_by_role("heading", name="eve").wait_for()
    await expect(window.get_by_role("combobox", name="Role")).to_have_value("admin")
    await expect_accessible(window)
    window.on("dialog", lambda dialog: asyncio.ensure_future(dialog.accept()))
    await window.get_by_role("button", name="Delete person").press("Enter")
    await expect(window.get_by_role("status")).to_contain_text("Person deleted")

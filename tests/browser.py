"""Chromium, driven by Playwright."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from playwright.async_api import BrowserContext, Page, async_playwright

CHROMIUM = os.environ.get("TOCSIN_CHROMIUM") or shutil.which("chromium")
needs_chromium = pytest.mark.skipif(
    not CHROMIUM, reason="there is no chromium here; install it, or set TOCSIN_CHROMIUM"
)

WCAG = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}}
"""The rules for axe."""

# Its own sandbox needs a user other than root, and its memory more than a container's /dev/shm
_ARGUMENTS = ["--no-sandbox", "--disable-dev-shm-usage"]
_PATIENCE = 20
"""So many seconds a window or a browser may take to close."""


@asynccontextmanager
async def open_browser() -> AsyncIterator[Any]:
    """Return a browser."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=CHROMIUM, args=_ARGUMENTS, handle_sigint=False
        )
        yield browser
        with suppress(TimeoutError):  # what does not end by itself ends with Playwright's driver
            async with asyncio.timeout(_PATIENCE):
                await browser.close()


@asynccontextmanager
async def open_window(browser: Any, url: str, **options: Any) -> AsyncIterator[Page]:
    """Return a page on `url`, in which nothing may fail, and that may reach nothing else."""
    context: BrowserContext = await browser.new_context(base_url=url, **options)
    page = await context.new_page()
    page.set_default_timeout(10_000)
    troubles: list[str] = []
    page.on("pageerror", lambda error: troubles.append(str(error)))

    def judge_message(message: Any) -> None:
        # of answers that are errors, the next tells more
        if message.type == "error" and "Failed to load resource" not in message.text:
            troubles.append(message.text)

    def judge_answer(answer: Any) -> None:
        is_page = answer.request.resource_type == "document"
        if not answer.url.startswith((url, "data:")) or not (is_page or answer.ok):
            troubles.append(f"{answer.status}: {answer.url}")

    page.on("console", judge_message)
    page.on("response", judge_answer)
    yield page
    async with asyncio.timeout(_PATIENCE):
        await context.close()
    assert not troubles, troubles


async def sign_in(page: Page, token: str) -> None:
    """Sign in by an admin token."""
    await page.goto("/sign-in")
    await page.get_by_label("Admin token").fill(token)
    await page.get_by_label("Admin token").press("Enter")
    await page.get_by_role("heading", name="Overview").wait_for()

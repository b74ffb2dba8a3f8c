"""Moving nodes of the graph and narrowing it by time, in a real browser."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from browser import needs_chromium

pytestmark = [needs_chromium, pytest.mark.asyncio(loop_scope="package")]
NEIGHBORHOOD = "/graph?entity=1&kind=incident&depth=2"
_TRANSFORMS = "nodes => nodes.map(node => node.getAttribute('transform'))"
_OVERLAPS = """nodes => {
  const boxes = nodes.map(node => node.querySelector('rect:last-of-type').getBoundingClientRect());
  const meet = (one, other) => one.left < other.right && other.left < one.right
    && one.top < other.bottom && other.top < one.bottom;
  return boxes.flatMap((one, place) =>
    boxes.slice(0, place).filter(other => meet(one, other))).length;
}"""
_FOCUSABLE = """links => links.filter((link) => {
  link.focus();
  return link === document.activeElement;
}).length"""


async def test_nodes_are_arranged_moved_and_restored(window: Page):
    await window.goto(NEIGHBORHOOD)
    nodes = window.locator(".neighbors g.node")
    before = await nodes.evaluate_all(_TRANSFORMS)
    await window.get_by_role("button", name="Arrange by relations").click()
    assert await nodes.evaluate_all(_TRANSFORMS) != before
    assert await nodes.evaluate_all(_OVERLAPS) == 0
    await window.get_by_role("button", name="Restore layout").click()
    assert await nodes.evaluate_all(_TRANSFORMS) == before

    box = await nodes.nth(1).bounding_box()
    assert box
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    await window.mouse.move(x, y)
    await window.mouse.down()
    await window.mouse.move(x + 40, y + 30, steps=4)
    await window.mouse.up()
    after = await nodes.evaluate_all(_TRANSFORMS)
    assert [one == other for one, other in zip(before, after, strict=True)].count(False) == 1
    assert window.url.endswith(NEIGHBORHOOD)  # a movement is not a click
    await nodes.nth(1).click()
    await expect(window).not_to_have_url(NEIGHBORHOOD)


async def test_nodes_that_are_hidden_by_their_time_cannot_take_the_focus(window: Page):
    await window.goto(f"{NEIGHBORHOOD}&unfold=yes")
    await window.get_by_label("First seen until").fill("0")
    links = window.locator(".neighbors a")
    focusable = await links.evaluate_all(_FOCUSABLE)
    hidden = await window.locator(".neighbors .later:has(g.node)").count()
    assert hidden > 0
    assert focusable == await links.count() - hidden


async def test_without_scripts_there_are_no_tools(window: Page):
    await window.route("**/graph.js*", lambda route: route.abort())
    await window.goto(NEIGHBORHOOD)
    await expect(window.locator(".graph-tools")).to_be_hidden()

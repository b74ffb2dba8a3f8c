"""The description for people: everything on one page that loads nothing and runs nothing."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser

import pytest

from api_server import open_api
from tocsin.model import EventType
from tocsin.web.endpoints import ENDPOINTS
from tocsin.web.routes.docs import make_page

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


class Page(HTMLParser):
    """What a page holds; reading it fails where an element is not closed in its turn."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.attributes: set[str] = set()
        self.texts: list[str] = []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag != "meta":
            self.open.append(tag)
        for name, value in attrs:
            self.attributes.add(name)
            if name == "id":
                self.ids.append(value)
            if name == "href":
                self.links.append(value)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)

    @property
    def text(self) -> str:
        return "".join(self.texts)


async def get_page(api) -> tuple[Page, str, str]:
    response = await api.client.get("/docs")
    assert response.status == 200
    assert response.content_type == "text/html"
    html = await response.text()
    return Page(html), html, response.headers["Content-Security-Policy"]


async def test_every_endpoint_and_event_is_on_the_page(api):
    page, _, _ = await get_page(api)
    for endpoint in ENDPOINTS:
        assert f"#{endpoint.handler.__name__}" in page.links
        assert f"{endpoint.method} {endpoint.path}" in page.text
    for kind in EventType:
        assert f"#{kind.value}" in page.links


async def test_every_link_leads_somewhere(api):
    page, _, _ = await get_page(api)
    assert len(page.ids) == len(set(page.ids))
    outside = {link for link in page.links if not link.startswith("#")}
    assert outside == {"openapi.json"}
    assert {link[1:] for link in page.links if link.startswith("#")} <= set(page.ids)


async def test_the_page_loads_and_runs_nothing(api):
    page, html, policy = await get_page(api)
    assert page.tags.isdisjoint({"script", "link", "img", "iframe", "form", "object"})
    assert not {name for name in page.attributes if name.startswith("on") or name == "style"}
    assert "src" not in page.attributes
    [style] = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
    assert "url(" not in style
    assert "@import" not in style
    digest = b64encode(sha256(style.encode()).digest()).decode()
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )


async def test_a_browser_is_served_and_whoever_takes_no_html_is_not(api):
    browser = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
    assert (await api.client.get("/docs", headers=browser)).status == 200
    assert (await api.client.get("/docs", headers={"Accept": "application/json"})).status == 406


@pytest.mark.parametrize(
    "command",
    [
        "curl -sS 'https://tocsin.example/api/v1/incidents/4711' \\\n  -H \"X-API-Key: $API_KEY\"",
        "curl -sS -X DELETE 'https://tocsin.example/api/admin/api-keys/0a1B2c3D4e5F6g7H' \\\n"
        '  -H "Authorization: Bearer $ADMIN_TOKEN"',
        "curl -sS -X POST 'https://tocsin.example/api/admin/api-clients/cl_0a1B2c3D4e5F6g7H"
        '/revoke-tokens\' \\\n  -H "Authorization: Bearer $ADMIN_TOKEN"',
        "curl -sS 'https://tocsin.example/oauth/token' \\\n  -u \"$CLIENT_ID:$CLIENT_SECRET\" \\\n"
        "  -d 'grant_type=client_credentials' \\\n  -d 'scope=incidents:read'",
    ],
)
async def test_the_page_shows_how_to_call(api, command):
    page, _, _ = await get_page(api)
    assert command in page.text


async def test_a_token_endpoint_elsewhere_is_called_there(database, clock):
    async with open_api(database, clock, auth_url="https://login.example") as api:
        page, _, _ = await get_page(api)
    assert "curl -sS 'https://login.example/oauth/token'" in page.text
    assert "curl -sS 'https://tocsin.example/healthz'" in page.text


async def test_nothing_in_the_document_becomes_markup(api):
    document = await (await api.client.get("/openapi.json")).json()
    document["info"]["summary"] = "<b>bold</b> & `<i>`"
    html = make_page(document).content.decode()
    assert "&lt;b&gt;bold&lt;/b&gt; &amp;" in html
    assert Page(html).tags.isdisjoint({"b", "i"})

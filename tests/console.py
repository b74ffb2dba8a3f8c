"""Console user without a browser, who signs in, reads pages and submits forms."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import unescape
from typing import Any

from aiohttp import ClientResponse
from sqlalchemy import update

from api_server import Api
from tocsin.store.tables import console_sessions

_TOKEN = re.compile(r'name="form_token" value="([0-9a-f]{64})"')
_TAGS = re.compile(r"<[^>]*>")


@dataclass
class Person:
    """Somebody with a session."""

    api: Api
    cookie: str = ""

    async def sign_in(self, role: str = "admin", **lifetime: float) -> None:
        """Sign in by an admin token; a viewer's role is given to the session afterwards."""
        form = {"token": await self.api.token(**lifetime), "next": "/"}
        response = await self.api.client.post("/sign-in", data=form, allow_redirects=False)
        assert response.status == 303, await response.text()
        self.cookie = response.headers["Set-Cookie"].partition(";")[0]
        if role != "admin":
            change = update(console_sessions).values(role=role)
            await self.api.services.database.write(lambda connection: connection.execute(change))

    async def get(self, path: str, **options: Any) -> ClientResponse:
        """Return what is answered to this person."""
        return await self.api.client.get(path, headers={"Cookie": self.cookie}, **options)

    async def post(self, path: str, **fields: str) -> ClientResponse:
        """Return what is answered to a form, without following where that leads."""
        headers = {"Cookie": self.cookie}
        return await self.api.client.post(path, data=fields, headers=headers, allow_redirects=False)

    async def html(self, path: str, status: int = 200) -> str:
        """Return a page as it is sent."""
        response = await self.get(path, allow_redirects=False)
        html = await response.text()
        assert response.status == status, html
        assert response.content_type == "text/html"
        return html

    async def text(self, path: str, status: int = 200) -> str:
        """Return what can be read on a page."""
        return text_of(await self.html(path, status))

    async def submit(self, page: str, action: str, status: int = 200, **fields: str) -> str:
        """Send a form of a page; return what can be read on the page that follows.

        `status` is that of the answer to the form, where it leads nowhere.
        """
        html = await self.html(page)
        assert f'action="{action}"' in html
        found = _TOKEN.search(html)
        assert found is not None
        response = await self.post(action, form_token=found[1], **fields)
        if response.status == 303 and status == 200:
            return await self.text(response.headers["Location"])
        assert response.status == status, await response.text()
        return text_of(await response.text())


def text_of(html: str) -> str:
    """Return what can be read, with single blanks."""
    body = html.partition("<body>")[2] or html
    return " ".join(unescape(_TAGS.sub(" ", body)).split())

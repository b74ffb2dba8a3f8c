"""Real OpenID provider: oidc-provider for Node.js, which is certified."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import ClientResponse, ClientSession, CookieJar
from jwt.algorithms import ECAlgorithm
from yarl import URL

from api_server import Api
from oidc_browser import CALLBACK, CLIENT, LEAD, Browser
from oidc_issuer import Key
from ports import free_port

PACKAGE = Path(
    os.environ.get(
        "TOCSIN_OIDC_PROVIDER", Path(__file__).parents[1] / ".components" / "oidc-provider"
    )
)
"""Where the package is installed; `.ci/components` does that."""
_MODULE = PACKAGE / "node_modules/oidc-provider/lib/index.js"
_SCRIPT = Path(__file__).with_suffix(".mjs")
_ACTION = re.compile(r'<form[^>]* action="([^"]+)"')
_CROSSING = re.compile(r'name="xsrf" value="([^"]+)"')

WHY_NOT = (
    None
    if _MODULE.is_file() and shutil.which("node")
    else f"no oidc-provider is installed in {PACKAGE}; run .ci/components"
)
"""Why there is no real OpenID provider to test with, None where there is one."""


@dataclass
class OpenIdProvider:
    """The provider, in a process of its own; Tocsin is its only client."""

    keys: list[Key]
    secret: str = "a-secret-of-the-console"
    port: int = field(default_factory=free_port)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def start(self, api: Api) -> None:
        """Answer from now on, with the current keys; nobody is signed in any more."""
        settings = {
            "issuer": self.url,
            "port": self.port,
            "client": CLIENT,
            "secret": self.secret,
            "redirect": f"{api.services.public_url}{CALLBACK}",
            "logout": str(api.client.make_url("/sign-in/back-channel-logout")),
            "keys": [_export(key) for key in self.keys],
        }
        self._process = await asyncio.create_subprocess_exec(
            "node", _SCRIPT, _MODULE, json.dumps(settings), stdout=asyncio.subprocess.PIPE
        )
        async with asyncio.timeout(60):
            while (line := await self._process.stdout.readline()) != b"listening\n":
                assert line, "the provider ended"

    async def stop(self) -> None:
        """Be away."""
        self._process.terminate()
        await self._process.communicate()


def _export(key: Key) -> dict[str, str]:
    return ECAlgorithm.to_jwk(key.private, as_dict=True) | {"kid": key.kid, "use": "sig"}


class Visitor(Browser):
    """A browser that fills in the forms of the provider."""

    def __init__(self, api: Api) -> None:
        super().__init__(api)
        self._session = ClientSession(cookie_jar=CookieJar(unsafe=True))

    async def close(self) -> None:
        await self._session.close()

    async def go_there(self, lead: str) -> str:
        """Return where the provider sends the browser back to that Tocsin sends there."""
        response = await self.get(lead)
        assert response.status == 303, await response.text()
        back = await self._follow(response.headers["Location"])
        assert str(back.with_query(None)) == f"{self.api.services.public_url}{CALLBACK}"
        return back.raw_path_qs

    async def check(self) -> ClientResponse:
        """Have the session checked as the browser does it that Tocsin sends to the provider."""
        response = await self.get("/")
        assert response.headers["Location"].startswith(LEAD)
        return await self.get(await self.go_there(response.headers["Location"]))

    async def sign_out_there(self, provider: OpenIdProvider) -> None:
        """End the session at the provider, which tells Tocsin."""
        page = await self._read(f"{provider.url}/session/end")
        fields = {"xsrf": _CROSSING.search(page)[1], "logout": "yes"}
        async with self._session.post(_ACTION.search(page)[1], data=fields) as response:
            assert response.status < 400, await response.text()

    async def _read(self, url: str) -> str:
        async with self._session.get(url) as response:
            return await response.text()

    async def _follow(self, url: str) -> URL:
        """Sign in and consent, and return the URL of Tocsin that this ends at."""
        fields = None
        for _ in range(12):
            method = "GET" if fields is None else "POST"
            async with self._session.request(
                method, url, data=fields, allow_redirects=False
            ) as response:
                text = await response.text()
                fields = None
                if location := response.headers.get("Location"):
                    next_url = URL(url).join(URL(location))
                    if next_url.host != "127.0.0.1":
                        return next_url
                    url = str(next_url)
                    continue
            assert _ACTION.search(text), text
            url = str(URL(url).join(URL(_ACTION.search(text)[1])))
            is_sign_in = 'name="login"' in text
            fields = (
                {"prompt": "login", "login": "ana", "password": "x"}
                if is_sign_in
                else {"prompt": "consent"}
            )
        raise AssertionError("the provider asks for ever")

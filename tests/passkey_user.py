"""Person with a software authenticator, who creates passkeys and signs in without a browser."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from aiohttp import ClientResponse

from api_server import URL, Api
from software_authenticator import SoftwareAuthenticator

LINK = "/sign-in/new-passkey"
SIGN_IN = "/sign-in/passkey"


def read_cookie(response: ClientResponse, name: str) -> str:
    """Return a cookie that the response sets, empty if it deletes it or sets none."""
    for text in response.headers.getall("Set-Cookie", []):
        pair = text.partition(";")[0]
        if pair.startswith(f"{name}=") and "Max-Age=0" not in text:
            return pair
    return ""


@dataclass
class PasskeyUser:
    """Somebody with a passkey."""

    api: Api
    device: SoftwareAuthenticator = field(default_factory=SoftwareAuthenticator)
    cookie: str = ""
    """The cookie of the last session."""
    ceremony: str = ""
    """The cookie of the last ceremony."""
    options: dict[str, Any] = field(default_factory=dict)

    async def begin(self, path: str, **fields: str) -> ClientResponse:
        """Ask for the options of a ceremony."""
        response = await self.api.client.post(f"{path}/options", data={"": "", **fields})
        if response.status == 200:
            self.options = await response.json()
            self.ceremony = read_cookie(response, "__Host-tocsin-passkey")
        return response

    async def send(self, path: str, **fields: str) -> ClientResponse:
        """Send the response of the authenticator, and keep the session that begins."""
        response = await self.api.client.post(
            path, data=fields, headers={"Cookie": self.ceremony}, allow_redirects=False
        )
        self.cookie = read_cookie(response, "__Host-tocsin")
        return response

    async def enroll(self, code: str, **fields: str) -> ClientResponse:
        """Create a passkey with the code of a link."""
        await self.begin(LINK, code=code)
        return await self.finish(code, **fields)

    async def finish(self, code: str, **fields: str) -> ClientResponse:
        """Create a passkey with the options that were asked for."""
        credential = self.device.create(self.options)
        return await self.send(LINK, code=code, credential=credential, **fields)

    async def sign_in(self, **fields: str) -> ClientResponse:
        """Sign in with the passkey."""
        await self.begin(SIGN_IN)
        return await self.send(SIGN_IN, credential=self.device.sign(self.options), **fields)

    async def status(self, path: str = "/") -> int:
        """Return the status of a page for this person."""
        headers = {"Cookie": self.cookie}
        response = await self.api.client.get(path, headers=headers, allow_redirects=False)
        return response.status


async def issue_code(admin: Any, name: str = "ben", role: str = "analyst") -> str:
    """Create a person, and return the code of the link."""
    body = {"name": name, "role": role}
    made = await admin.ask("POST", "/api/admin/people", 201, json=body)
    url, _, code = made["link"].partition("#")
    assert url == f"{URL}{LINK}"
    return code

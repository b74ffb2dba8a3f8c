"""Browser that signs in to the console at an issuer, without running scripts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import ClientResponse, ClientSession
from yarl import URL

from api_server import Api, open_api
from console import Person
from oidc_issuer import Issuer

CLIENT = "tocsin-console"
LEAD, CALLBACK = "/sign-in/oidc", "/sign-in/callback"


@dataclass
class Browser:
    """What a browser does on the way to the issuer and back."""

    api: Api
    cookies: dict[str, str] = field(default_factory=dict)

    async def get(self, path: str) -> ClientResponse:
        """Return what Tocsin answers, once its cookies are kept."""
        cookie = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        response = await self.api.client.get(
            path, headers={"Cookie": cookie}, allow_redirects=False
        )
        for name, morsel in response.cookies.items():
            self.cookies[name] = morsel.value
        return response

    async def sign_in_there(self, place: str = "/") -> str:
        """Return where the issuer sends the browser back to."""
        return await self.go_there(str(URL(LEAD).with_query(next=place)))

    async def go_there(self, lead: str) -> str:
        """Return where the issuer sends the browser back to that Tocsin sends there."""
        response = await self.get(lead)
        assert response.status == 303, await response.text()
        async with (
            ClientSession() as session,
            session.get(response.headers["Location"], allow_redirects=False) as answer,
        ):
            back = URL(answer.headers["Location"])
        assert str(back.with_query(None)) == f"{self.api.services.public_url}{CALLBACK}"
        return back.raw_path_qs

    async def sign_in(self, place: str = "/") -> ClientResponse:
        """Return what Tocsin answers whoever comes back."""
        return await self.get(await self.sign_in_there(place))

    @property
    def person(self) -> Person:
        """Whoever is signed in."""
        return Person(self.api, f"__Host-tocsin={self.cookies.get('__Host-tocsin', '')}")


@asynccontextmanager
async def open_for(issuer: Issuer, database, clock, **changed: object) -> AsyncIterator[Api]:
    named = {"oidc_issuer": issuer.url, "oidc_client_id": CLIENT}
    async with open_api(
        database, clock, **named | {"oidc_client_secret": issuer.secret} | changed
    ) as api:
        yield api

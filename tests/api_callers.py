"""API callers with different roles, and requests that tests hold back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event
from typing import Any

from api_server import Api

KEYS = "/api/admin/api-keys"
CLIENTS = "/api/admin/api-clients"
DESTINATIONS = "/api/admin/destinations"
AUDIT = "/api/admin/audit"
INCIDENTS = "/api/v1/incidents"
GOOD = {"name": "playbooks", "scopes": ["incidents:read"]}
GOOD_DESTINATION = {
    "name": "soar",
    "plugin": "webhook",
    "settings": {
        "url": "http://127.0.0.1:9/",
        "secret": "whsec_" + "QUJD" * 10,
        "allow_networks": ["127.0.0.0/8"],
    },
}
"""A destination that is right, and that nobody listens at."""

# What list items carry, by the specification
KEY_MEMBERS = {
    "id",
    "key_id",
    "key_prefix",
    "name",
    "description",
    "status",
    "scopes",
    "created_by",
    "created_at",
    "updated_at",
    "expires_at",
    "last_used_at",
    "last_rotated_at",
    "previous_key_expires_at",
}
CLIENT_MEMBERS = {
    "id",
    "client_id",
    "name",
    "description",
    "status",
    "scopes",
    "created_by",
    "created_at",
    "last_used_at",
}


@dataclass
class Caller:
    """Calls the API by a credential."""

    api: Api
    headers: dict[str, str]

    async def send(self, method: str, path: str, *, headers: Any = None, **options: Any):
        """Return the response."""
        sent = self.headers | (headers or {})
        return await self.api.client.request(method, path, headers=sent, **options)

    async def ask(self, method: str, path: str, status: int = 200, **options: Any) -> Any:
        """Return what is answered under this status."""
        response = await self.send(method, path, **options)
        assert response.status == status, await response.text()
        return await response.json()

    async def read(self, path: str, **query: Any) -> Any:
        """Return what is there."""
        return await self.ask("GET", path, params=query)


class Admin(Caller):
    """Calls the API by an admin's token."""

    async def create_key(self, **body: Any) -> dict[str, Any]:
        """Return a new key, with its value."""
        return await self.ask("POST", KEYS, 201, json=GOOD | body)

    async def rotate(self, key_id: str, **body: Any) -> dict[str, Any]:
        """Return the key's new value."""
        return await self.ask("POST", f"{KEYS}/{key_id}/rotate", json=body)

    async def create_client(self, **body: Any) -> dict[str, Any]:
        """Return a new client, with its secret."""
        return await self.ask("POST", CLIENTS, 201, json=GOOD | body)

    async def regenerate(self, client_id: str) -> str:
        """Return the client's new secret."""
        answer = await self.ask("POST", f"{CLIENTS}/{client_id}/regenerate-secret")
        return answer["client_secret"]

    async def audited(self, **query: Any) -> list[dict[str, Any]]:
        """Return the newest entries of the audit log."""
        return (await self.read(AUDIT, **query))["entries"]


async def admitted(api: Api, key: str) -> bool:
    """Return whether the API lets the key in."""
    response = await api.client.get(INCIDENTS, headers={"X-API-Key": key})
    assert response.status in {200, 401}, await response.text()
    return response.status == 200


async def token_admitted(api: Api, token: str) -> bool:
    """Return whether the API lets the access token in."""
    response = await api.client.get(INCIDENTS, headers={"Authorization": f"Bearer {token}"})
    assert response.status in {200, 401}, await response.text()
    return response.status == 200


async def request_token(api: Api, client: dict[str, Any]):
    """Return the response to a client that asks for a token."""
    form = {name: client[name] for name in ("client_id", "client_secret")}
    return await api.client.post("/oauth/token", data=form | {"grant_type": "client_credentials"})


async def obtain_token(api: Api, client: dict[str, Any]) -> str:
    """Return an access token of the client."""
    response = await request_token(api, client)
    assert response.status == 200, await response.text()
    return (await response.json())["access_token"]


@contextmanager
def hashing_held(*apis: Api) -> Iterator[None]:
    """Keep every Argon2id waiting meanwhile."""
    release = Event()
    for api in apis:
        threads = api.services.hasher._threads
        for _ in range(threads._max_workers):
            threads.submit(release.wait)
    try:
        yield
    finally:
        release.set()


async def until(condition: Callable[[], bool]) -> None:
    """Return as soon as the tasks that are under way have made it so."""
    while not condition():  # noqa: ASYNC110 - what is waited for sets no event
        await asyncio.sleep(0)

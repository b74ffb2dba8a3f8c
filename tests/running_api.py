"""A running API on either database, with a key and an admin to call it by."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import timedelta

import pytest
from aiohttp.test_utils import TestClient, TestServer
from cryptography.fernet import Fernet
from ulid import ULID

from tocsin.credentials import (
    Admins,
    ApiKey,
    Hasher,
    Scope,
    Vault,
    create_api_key,
    generate,
)
from tocsin.store import Database
from tocsin.web import Services, make_app
from tocsin.web.problems import Problem

URL = "https://tocsin.example"


@dataclass
class Api:
    """The services behind the API, and a client that talks to it over a socket."""

    services: Services
    roles: dict[str, bool]
    client: TestClient = field(init=False)

    async def key(self, *scopes: Scope, days: int = 1) -> str:
        """Store a key with these scopes, and return it."""
        value, text = generate()
        now = self.services.clock.now()
        key = ApiKey(
            id=str(ULID()),
            key_id=value.key_id,
            name="playbooks",
            description="",
            scopes=scopes,
            secret_hash=await self.services.hasher.hash(value.secret),
            created_by="ana",
            created_at=now,
            expires_at=now + timedelta(days=days),
        )
        await self.services.database.write(create_api_key, key)
        self.services.hasher.runs = 0
        return text

    async def token(self, **lifetime: float) -> str:
        """Issue an admin token, and return it."""
        expires_in = timedelta(**lifetime or {"hours": 1})
        issue = self.services.admins.issue
        return await self.services.database.write(issue, name="ana", expires_in=expires_in)

    async def reader(self) -> dict[str, str]:
        """Return headers that may read incidents."""
        return {"X-API-Key": await self.key(Scope.INCIDENTS_READ)}

    async def admin(self) -> dict[str, str]:
        """Return headers of an admin."""
        return {"Authorization": f"Bearer {await self.token()}"}


@pytest.fixture
async def api(database: Database, clock) -> AsyncIterator[Api]:
    hasher = Hasher(clock)
    roles = {"api": True}
    services = Services(
        database=database,
        clock=clock,
        hasher=hasher,
        admins=Admins(Vault(Fernet.generate_key().decode(), source="test"), clock),
        public_url=URL,
        roles=lambda: roles,
    )
    api = Api(services, roles)
    async with TestClient(TestServer(make_app(services))) as client:
        api.client = client
        yield api
    hasher.close()


async def problem(response, status: int) -> dict:
    """Return the problem document of this status that the response must be."""
    assert response.status == status
    assert response.content_type == "application/problem+json"
    document = await response.json()
    Problem.model_validate(document, strict=True)
    assert document["status"] == status
    assert document["instance"] == response.url.raw_path
    assert response.headers["X-Request-Id"]
    assert ("WWW-Authenticate" in response.headers) == (status == 401)
    return document

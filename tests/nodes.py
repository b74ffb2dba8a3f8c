"""Several nodes of one service, over one PostgreSQL database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import sqlalchemy
from aiohttp.test_utils import TestClient, TestServer
from cryptography.fernet import Fernet

from running_api import URL, Api
from tocsin.credentials import Vault
from tocsin.settings import Settings
from tocsin.store import open_database
from tocsin.web import make_app, open_door


@asynccontextmanager
async def open_nodes(
    url: sqlalchemy.URL, clock, *, count: int = 2, **settings: object
) -> AsyncIterator[list[Api]]:
    """Return nodes that share a database and an encryption key, and nothing else."""
    made = Settings(**{"base_url": URL, **settings})
    vault = Vault(Fernet.generate_key().decode(), source="test")
    async with AsyncExitStack() as stack:
        yield [await _open_node(stack, url, made, vault, clock) for _ in range(count)]


async def _open_node(stack: AsyncExitStack, url, settings, vault, clock) -> Api:
    database = open_database(url)
    stack.push_async_callback(database.close)
    roles = {"api": True}
    door = await stack.enter_async_context(
        open_door(settings, database, vault, clock, is_shared=True, roles=lambda: roles)
    )
    api = Api(door, roles)
    server = TestServer(make_app(door.services))
    api.client = await stack.enter_async_context(TestClient(server))
    return api

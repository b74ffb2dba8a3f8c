"""The running API, for every test beside this file, alone and as two nodes of one database."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack

import pytest

from api_callers import Admin, Caller
from api_server import CHEAP_HASHER, Api, api, open_api
from incident_rows import add_incidents
from tocsin.credentials import hashing
from tocsin.events import Notifiers
from tocsin.knowledge import SearchIndexer
from tocsin.store import open_database

__all__ = ["api"]


@pytest.fixture(scope="module", autouse=True)  # the scope of a package would end with the session
def _cheap_hashes() -> Iterator[None]:
    """Let the API hash secrets with parameters that take no time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hashing, "_argon2", CHEAP_HASHER)
        yield


@pytest.fixture
async def admin(api) -> Admin:
    return Admin(api, await api.admin())


@pytest.fixture
async def analyst(api) -> Caller:
    return Caller(api, await api.analyst())


@pytest.fixture
def add(api, clock):
    """Store incidents, and have them be found."""

    async def add(count: int = 1, **values) -> list[int]:
        numbers = await api.services.database.write(add_incidents, count, **values)
        await SearchIndexer(api.services.database, clock, Notifiers()).catch_up()
        return numbers

    return add


@pytest.fixture
async def nodes(database, database_url, clock) -> AsyncIterator[tuple[Api, Api]]:
    """Two nodes, each with connections of its own to one database."""
    async with AsyncExitStack() as stack:
        other = open_database(database_url)
        stack.push_async_callback(other.close)
        first = await stack.enter_async_context(open_api(database, clock))
        second = await stack.enter_async_context(open_api(other, clock))
        yield first, second

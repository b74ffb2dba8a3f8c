"""The console behind a real OpenID provider."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime, timedelta

import pytest

from api_server import Api
from oidc_browser import open_for
from oidc_issuer import ec_key
from oidc_provider import WHY_NOT, OpenIdProvider, Visitor
from tocsin.clock import SystemClock

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT)),
    pytest.mark.parametrize("database_url", ["sqlite"], indirect=True),
]


class AheadClock(SystemClock):
    """The machine's clock, which can be put forward."""

    def __init__(self) -> None:
        self.ahead = timedelta(0)

    def now(self) -> datetime:
        return super().now() + self.ahead


@pytest.fixture
def clock() -> AheadClock:
    return AheadClock()


@pytest.fixture
def provider() -> OpenIdProvider:
    return OpenIdProvider([ec_key("first")])


@pytest.fixture
async def api(provider, database, clock) -> AsyncIterator[Api]:
    async with open_for(provider, database, clock, oidc_recheck_seconds=60) as api:
        await provider.start(api)
        yield api
        await provider.stop()


@pytest.fixture
async def visitor(api) -> AsyncIterator[Visitor]:
    visitor = Visitor(api)
    response = await visitor.sign_in()
    assert response.status == 303, await response.text()
    yield visitor
    await visitor.close()


async def test_a_person_signs_in_and_the_session_is_checked_unseen(visitor, clock):
    assert (await visitor.get("/")).status == 200
    clock.ahead += timedelta(seconds=61)
    assert (await visitor.check()).status == 303
    assert (await visitor.get("/")).status == 200


async def test_keys_that_rotate_while_the_provider_is_away_keep_nobody_out(visitor, provider, api):
    await provider.stop()
    provider.keys = [ec_key("second")]
    assert (await visitor.get("/")).status == 200
    await provider.start(api)
    again = Visitor(api)
    assert (await again.sign_in()).status == 303
    assert (await again.get("/")).status == 200
    await again.close()


async def test_a_sign_out_at_the_provider_ends_the_session_here(visitor, provider):
    assert (await visitor.get("/")).status == 200
    await visitor.sign_out_there(provider)
    assert (await visitor.get("/")).status == 303

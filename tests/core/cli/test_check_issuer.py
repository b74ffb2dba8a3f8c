"""`tocsin check` asks the OpenID Connect issuer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from oidc_issuer import Issuer, rsa_key


@pytest.fixture
async def issuer() -> AsyncIterator[Issuer]:
    issuer = Issuer()
    issuer.keys = [rsa_key()]
    await issuer.start()
    yield issuer
    await issuer.stop()


@pytest.fixture
def check(tocsin, tmp_path: Path, issuer):
    """Run the check with this issuer, and return status, output and errors."""
    (tmp_path / "plugins.toml").touch()

    async def check(**variables: str) -> Any:
        named = {"TOCSIN_OIDC_ISSUER": issuer.url, "TOCSIN_OIDC_CLIENT_ID": "tocsin"}
        return await asyncio.to_thread(tocsin, "check", **named | variables)

    return check


async def test_an_issuer_that_can_be_used_is_described(check, issuer):
    issuer.discovery = {"backchannel_logout_supported": True}
    status, out, errors = await check()
    assert (status, errors) == (0, "")
    assert f"openid connect: {issuer.url}: 1 key, sign-in endpoints; reports ended sessions" in out
    assert issuer.fetches == {"discovery": 1, "keys": 1}


WRONG = {
    "another issuer": ({"discovery": {"issuer": "https://idp.example"}}, "is for another issuer"),
    "no sign-in": ({"discovery": {"token_endpoint": None}}, "does not list sign-in endpoints"),
    "no keys": ({"keys": []}, "does not list a key for verifying signatures"),
    "an error": ({"status": 503}, "returned status 503"),
}


@pytest.mark.parametrize(("state", "words"), WRONG.values(), ids=WRONG)
async def test_an_issuer_that_cannot_be_used_fails_the_check(check, issuer, state, words):
    for name, value in state.items():
        setattr(issuer, name, value)
    status, _, errors = await check()
    assert status == 1
    assert "openid connect: http" in errors
    assert words in errors


async def test_an_issuer_of_access_tokens_alone_needs_no_sign_in(check, issuer):
    issuer.discovery = {"token_endpoint": None}
    status, _, errors = await check(TOCSIN_OIDC_CLIENT_ID="", TOCSIN_OIDC_AUDIENCE="tocsin")
    assert (status, errors) == (0, "")


async def test_an_issuer_that_is_away_fails_the_check(check, issuer):
    await issuer.stop()
    status, _, errors = await check()
    assert status == 1
    assert "openid connect: " in errors
    assert "cannot connect" in errors

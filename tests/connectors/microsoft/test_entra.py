"""Sign-in to Microsoft Entra ID in each cloud."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import ClassVar
from urllib.parse import urlsplit

import orjson
import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from tests.connectors.microsoft.cloud import CREDENTIALS, TOKEN_PATH, MicrosoftSimulator

from tocsin import CredentialsRefused
from tocsin.testing import Siem, loopback_client, make_settings, make_tools
from tocsin_connectors.microsoft.clouds import MICROSOFT_CLOUDS
from tocsin_connectors.microsoft.entra import EntraClient, _read_roles
from tocsin_connectors.siem.defender import Defender
from tocsin_connectors.siem.sentinel import Sentinel

OF_SENTINEL = {
    **CREDENTIALS,
    "subscription": "11111111-2222-4333-8444-555555555555",
    "resource_group": "soc",
    "workspace": "soc-logs",
}
MANAGEMENT, LOGS = MICROSOFT_CLOUDS["public"].management, MICROSOFT_CLOUDS["public"].logs


class Cloud(MicrosoftSimulator):
    """Two APIs, each with tokens of its own."""

    time_column = "TimeGenerated"
    audiences: ClassVar = {"/": MANAGEMENT, "/logs": LOGS}

    def routes(self):
        return [*self.entra_routes(), web.get("/management", self.ok), web.get("/logs", self.ok)]

    def render(self, case):
        return {}

    async def ok(self, request):
        return self.json({})


@pytest.fixture
async def cloud(clock) -> AsyncIterator[Cloud]:
    async with Cloud(Siem(clock)) as cloud:
        yield cloud


@pytest.fixture
async def entra(cloud, clock):
    http = loopback_client()

    def make(**changes: str) -> EntraClient:
        given = {"url": cloud.url, "authority": cloud.url, **CREDENTIALS, **changes}
        return EntraClient(make_settings(Defender, **given), make_tools(http, clock=clock))

    yield make
    await http.close()


def signs_in(cloud: Cloud) -> int:
    return sum(asked.path == TOKEN_PATH for asked in cloud.requests)


async def test_each_audience_has_its_own_token(entra, cloud):
    signed = entra()
    management, logs = signed.api(cloud.url, MANAGEMENT), signed.api(cloud.url, LOGS)
    for _ in range(3):
        await management.get("/management")
        await logs.get("/logs")
    assert signs_in(cloud) == 2


async def test_token_of_another_audience_is_refused(entra, cloud):
    with pytest.raises(CredentialsRefused):
        await entra().api(cloud.url, MANAGEMENT).get("/logs")


async def test_token_is_renewed_before_expiry(entra, cloud, clock):
    api = entra().api(cloud.url, MANAGEMENT)
    await api.get("/management")
    clock.advance(minutes=58)
    await api.get("/management")
    assert signs_in(cloud) == 1
    clock.advance(minutes=1, seconds=1)
    await api.get("/management")
    assert signs_in(cloud) == 2


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"client_secret": "another"}, "AADSTS7000215"),
        ({"client_id": "another"}, "AADSTS700016"),
        ({"tenant_id": "another.example.com"}, "AADSTS90002"),
    ],
)
async def test_errors_quote_entra(entra, cloud, change, words):
    with pytest.raises(CredentialsRefused, match=words) as caught:
        await entra(**change).api(cloud.url, MANAGEMENT).get("/management")
    assert "another" not in str(caught.value) or "client_secret" not in change


@pytest.mark.parametrize("name", sorted(MICROSOFT_CLOUDS))
def test_cloud_sets_all_endpoints(name):
    cloud = MICROSOFT_CLOUDS[name]
    sentinel = make_settings(Sentinel, cloud=name, **OF_SENTINEL)
    defender = make_settings(Defender, cloud=name, **CREDENTIALS)
    assert (sentinel.url, sentinel.logs_url) == (cloud.management, cloud.logs)
    assert (sentinel.authority, defender.authority) == (cloud.authority, cloud.authority)
    assert defender.url == cloud.graph


def test_clouds_share_no_credential_endpoints():
    public, china = MICROSOFT_CLOUDS["public"], MICROSOFT_CLOUDS["china"]
    government = {MICROSOFT_CLOUDS[name].authority for name in ("usgov", "usdod")}
    assert len({public.authority, china.authority, *government}) == 3
    for cloud in MICROSOFT_CLOUDS.values():
        for url in (cloud.authority, cloud.management, cloud.logs, cloud.graph):
            assert urlsplit(url).scheme == "https"


def test_endpoints_can_be_overridden():
    given = make_settings(
        Sentinel, cloud="china", logs_url="https://logs.example.com", **OF_SENTINEL
    )
    assert given.logs_url == "https://logs.example.com"
    assert given.url == MICROSOFT_CLOUDS["china"].management


@pytest.mark.parametrize("name", ["germany", 7, ["public"]])
def test_unknown_cloud_is_refused(name):
    with pytest.raises(ValidationError, match="cloud"):
        make_settings(Defender, cloud=name, **CREDENTIALS)


def test_permissions_are_read_from_the_token():
    claims = orjson.dumps({"roles": ["ThreatHunting.Read.All"]})
    token = f"head.{urlsafe_b64encode(claims).decode().rstrip('=')}.signature"
    assert _read_roles(token) == {"ThreatHunting.Read.All"}


@given(token=st.text() | st.binary().map(lambda item: f"a.{urlsafe_b64encode(item).decode()}.b"))
def test_unreadable_token_has_no_permissions(token):
    assert _read_roles(token) == frozenset()


def test_settings_include_the_common_ones():
    settings = make_settings(Sentinel, first_fetch="3d", **OF_SENTINEL)
    assert settings.first_fetch == timedelta(days=3)

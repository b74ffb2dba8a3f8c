"""Common behavior of online enrichers."""

from __future__ import annotations

from datetime import timedelta

import pytest
from aiohttp import web

from tocsin import Broken, CredentialsRefused, Entity, EntityKind, PluginFailure, Refused, TryLater
from tocsin_plugins.abuseipdb import AbuseIpDb
from tocsin_plugins.greynoise import GreyNoise
from tocsin_plugins.misp import Misp
from tocsin_plugins.rdap import Rdap
from tocsin_plugins.virustotal import VirusTotal

from .vendors import (
    KEY,
    AbuseIpDbServer,
    GreyNoiseServer,
    MispServer,
    RdapServer,
    VirusTotalServer,
)

KINDS = {
    AbuseIpDb: AbuseIpDbServer,
    GreyNoise: GreyNoiseServer,
    Misp: MispServer,
    Rdap: RdapServer,
    VirusTotal: VirusTotalServer,
}
ADDRESS = Entity(EntityKind.IP, "198.51.100.7")
WITH_KEYS = [kind for kind in KINDS if kind is not Rdap]


@pytest.fixture(params=KINDS, ids=lambda kind: kind.name)
def kind(request):
    return request.param


@pytest.fixture
async def vendor(kind):
    async with KINDS[kind]() as vendor:
        yield vendor


@pytest.fixture
def enricher(kind, vendor, make):
    return make(kind, **vendor.settings)


def test_it_says_that_it_asks_outside_and_does_not_run_unasked(kind):
    assert kind.online
    assert not kind.standing


async def test_it_can_be_checked(enricher):
    assert (await enricher.check()).detail


async def test_of_what_the_vendor_does_not_know_nothing_is_said(enricher, kind):
    said = await enricher.enrich([ADDRESS])
    assert kind is AbuseIpDb or said == []  # which has a report of every address


async def test_the_same_question_has_the_same_answer(enricher):
    assert await enricher.enrich([ADDRESS]) == await enricher.enrich([ADDRESS])


@pytest.mark.parametrize("kind", WITH_KEYS, indirect=True, ids=lambda kind: kind.name)
async def test_a_wrong_key_is_told_as_such_and_never_shown(kind, vendor, make):
    wrong = make(kind, **(vendor.settings | {"api_key": "wr0ng-key"}))
    for ask in (wrong.check, lambda: wrong.enrich([ADDRESS])):
        with pytest.raises(CredentialsRefused) as raised:
            await ask()
        assert "wr0ng-key" not in str(raised.value)


async def test_one_that_throttles_says_for_how_long(enricher, vendor):
    vendor.fault = web.Response(status=429, headers={"Retry-After": "3600"})
    with pytest.raises(TryLater) as raised:
        await enricher.enrich([ADDRESS])
    assert raised.value.throttled
    assert raised.value.after == timedelta(hours=1)


@pytest.mark.parametrize(
    "fault",
    [
        web.Response(status=500, text="oops"),
        web.Response(text="<html>Sign in</html>", content_type="text/html"),
        web.Response(text="[1, 2", content_type="application/json"),
        web.Response(text="[]", content_type="application/json"),
        web.Response(text="{}", content_type="application/json"),
        web.Response(text='{"data": 7, "response": "x"}', content_type="application/json"),
    ],
)
async def test_what_is_no_answer_is_broken(enricher, vendor, fault):
    vendor.fault = fault
    with pytest.raises(Broken):
        await enricher.enrich([ADDRESS])


@pytest.mark.parametrize("kind", WITH_KEYS, indirect=True, ids=lambda kind: kind.name)
async def test_no_redirect_is_followed_with_the_key(enricher, vendor):
    vendor.fault = web.Response(status=302, headers={"Location": f"{vendor.url}/elsewhere"})
    with pytest.raises(Refused):
        await enricher.enrich([ADDRESS])
    assert len(vendor.requests) == 1


async def test_one_that_is_away_is_asked_later(kind, make):
    async with KINDS[kind]() as vendor:
        settings = vendor.settings
    with pytest.raises(TryLater):
        await make(kind, **settings).enrich([ADDRESS])


HOSTILE = ["..", "../../admin", "%2e%2e/admin", "a b", "x?y=1#z", "a\r\nb: c", "!evil", "%", "日本"]


@pytest.mark.parametrize("value", HOSTILE)
async def test_hostile_values_reach_nothing_else(enricher, vendor, kind, value):
    for entity_kind in sorted(kind.kinds):
        try:
            said = await enricher.enrich([Entity(entity_kind, value)])
        except PluginFailure:
            continue
        assert all(enrichment.entity == Entity(entity_kind, value) for enrichment in said)
    paths = {request.path for request in vendor.requests}
    assert not any("admin" in path.split("/") for path in paths)


@pytest.mark.parametrize("kind", WITH_KEYS, indirect=True, ids=lambda kind: kind.name)
async def test_the_key_is_in_no_address(enricher, vendor):
    await enricher.enrich([ADDRESS])
    assert vendor.requests
    assert not any(KEY in str(request.url) for request in vendor.requests)

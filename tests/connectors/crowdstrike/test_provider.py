"""Behavior specific to CrowdStrike: clouds, ties, errors with status 200, searches, write-back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tocsin import (
    Broken,
    CredentialsRefused,
    Entity,
    EntityKind,
    IncidentStatus,
    Misconfigured,
    Refused,
    TryLater,
    Window,
)
from tocsin.providers import retry_after
from tocsin.testing import LogEvent, Siem, make_settings, open_provider
from tocsin_connectors.siem.crowdstrike import CrowdStrike, pagination
from tocsin_connectors.siem.crowdstrike import client as falcon_module
from tocsin_connectors.siem.crowdstrike.client import FalconClient
from tocsin_connectors.siem.crowdstrike.settings import FALCON_CLOUDS, FalconCloud
from tocsin_connectors.siem.records import format_milliseconds

from .simulator import OFFSETS_END, SETTINGS, FalconSimulator

LIST = "/alerts/combined/alerts/v1"
ADDRESS = Entity(EntityKind.IP, "198.51.100.9")


async def read(provider):
    pages = [page async for page in provider.read("changed", None, provider.tools.clock.now())]
    found = [incident for page in pages for incident in page.incidents]
    return [incident.external_id for incident in found if not incident.only_if_stored]


async def ask(provider, limit=10):
    now = provider.tools.clock.now()
    window = Window(now - timedelta(hours=1), now)
    return [event async for event in provider.events(ADDRESS, window, limit)]


# clouds and the sign-in


@pytest.mark.parametrize("name", FALCON_CLOUDS)
def test_cloud_sets_the_host(name):
    settings = make_settings(CrowdStrike, cloud=name, **SETTINGS)
    assert settings.url == FALCON_CLOUDS[name].api


def test_explicit_url_overrides_cloud():
    url = "https://falcon-proxy.example.com"
    settings = make_settings(CrowdStrike, cloud="eu-1", url=url, **SETTINGS)
    assert settings.url == url


async def test_redirected_sign_in_is_misconfigured(falcon, opened):
    falcon.redirects_to = FALCON_CLOUDS["us-2"].api
    async with opened() as provider:
        with pytest.raises(Misconfigured, match=r"api\.us-2\.crowdstrike\.com.*set `cloud`"):
            await provider.check()
    assert {request.path for request in falcon.requests} == {"/oauth2/token"}


async def test_wrong_cloud_is_reported_with_the_right_one(falcon, opened, monkeypatch):
    here = {"us-1": FalconCloud(falcon.url, falcon.url), "eu-1": FALCON_CLOUDS["eu-1"]}
    monkeypatch.setattr(falcon_module, "FALCON_CLOUDS", here)
    falcon.region = "eu-1"
    async with opened() as provider:
        with pytest.raises(Misconfigured, match='set cloud = "eu-1"'):
            await provider.check()


async def test_flight_control_child_sign_in(falcon, opened):
    async with opened(member_cid="ab" * 16) as provider:
        await provider.check()
    assert falcon.member_cid == "ab" * 16


async def test_wrong_secret_is_credentials_refused(opened):
    async with opened(client_secret="another") as provider:
        with pytest.raises(CredentialsRefused, match="invalid client"):
            await provider.check()


async def test_secret_is_not_in_urls(falcon, opened):
    async with opened() as provider:
        await provider.check()
    assert not any("secret" in str(request.query) for request in falcon.requests)


# check


@pytest.mark.parametrize("writing", ["write_back", "close_from_tickets"])
@pytest.mark.parametrize("scope", ["Alerts: Read", "Alerts: Write", "NGSIEM: Read and Write"])
async def test_missing_scope_is_reported(falcon, opened, scope, writing):
    falcon.lacks = {scope}
    async with opened(**{writing: True}) as provider:
        health = await provider.check()
    assert health.problems == (f"the API client lacks the scope {scope}",)


async def test_check_writes_nothing(falcon, opened):
    async with opened(write_back=True) as provider:
        health = await provider.check()
    assert (health.problems, falcon.changes, falcon.jobs) == ((), [], {})


async def test_read_only_needs_no_write_or_search_scope(falcon, opened):
    falcon.lacks = {"Alerts: Write", "NGSIEM: Read and Write"}
    async with opened(event_repository="") as provider:
        assert (await provider.check()).problems == ()


# reading


async def test_more_alerts_of_one_time_than_a_page_arrive(falcon, opened, put, clock):
    falcon.most_per_page = 3
    at = clock.now() - timedelta(minutes=5)
    names = {put(changed_at=at).id for _ in range(10)} | {put().id for _ in range(4)}
    async with opened() as provider:
        assert set(await read(provider)) == names


async def test_only_alerts_of_one_time_use_page_tokens(falcon, opened, put, clock):
    falcon.most_per_page = 3
    now = clock.now() - timedelta(minutes=9)
    for second in range(9):
        put(changed_at=now + timedelta(seconds=second))
    falcon.page_token_lifetime = timedelta(0)  # any that is used has expired
    async with opened() as provider:
        found = await read(provider)
    assert len(found) == 9


@pytest.mark.full
async def test_more_alerts_than_the_offset_limit_are_read(falcon, opened, put, clock):
    at = clock.now() - timedelta(minutes=5)
    names = {put(changed_at=at).id for _ in range(OFFSETS_END + 100)}
    window = Window(at, at + timedelta(seconds=1))
    by_offset = {
        "filter": pagination.build_update_filter(format_milliseconds(window.start), window.end),
        "limit": 100,
        "offset": OFFSETS_END,
    }
    async with opened() as provider:
        with pytest.raises(Refused, match=r"at most 10000"):
            await FalconClient(provider.settings, provider.tools).api.get(
                "/alerts/queries/alerts/v2", **by_offset
            )
        assert set(await read(provider)) == names


async def test_errors_with_status_200_are_not_an_empty_list(falcon, opened, put):
    put()
    falcon.errors = [{"code": 500, "message": "search failed"}]
    async with opened() as provider:
        with pytest.raises(Broken, match="search failed"):
            await read(provider)


async def test_deprecated_endpoints_are_not_used(falcon, opened, put, clock):
    case = put()
    async with opened() as provider:
        await read(provider)
        await provider.incident(case.id)
        await provider.comment(case.id, "text", "key")
    asked = {request.path for request in falcon.requests}
    assert not any(item.startswith(("/incidents", "/detects")) or "/v1/" in item for item in asked)
    assert asked == {
        "/oauth2/token",
        LIST,
        "/alerts/entities/alerts/v2",
        "/alerts/entities/alerts/v3",
    }


async def test_two_customers_are_read_concurrently(falcon, opened, put, clock):
    async with FalconSimulator(Siem(clock)) as other:
        ours, theirs = put(), other.siem.put(put(id="another:ind:d:9"))
        another = {"url": other.url, **SETTINGS, "cloud": "eu-1"}
        async with opened() as one, open_provider(CrowdStrike, clock=clock, **another) as two:
            assert set(await read(one)) == {ours.id, theirs.id}
            assert await read(two) == [theirs.id]
            assert await two.incident(ours.id) is None


# events


async def test_search_is_polled_and_deleted(falcon, opened, clock):
    falcon.polls = 4
    at = clock.now() - timedelta(minutes=7)
    entities = (ADDRESS, Entity(EntityKind.HOST, "bastion"))
    falcon.siem.log(LogEvent(id="e1", occurred_at=at, entities=entities, text="x"))
    async with opened() as provider:
        [event] = await ask(provider)
    assert event.summary == "NetworkConnectIP4: 198.51.100.9, bastion, curl.exe"
    assert [
        (relation.source.value, relation.type, relation.target.value)
        for relation in event.relations
    ] == [("bastion", "connected-to", "198.51.100.9")]
    assert falcon.jobs == {}


async def test_search_with_warnings_is_incomplete(falcon, opened, clock):
    falcon.warnings = ["Query cut: too much data"]
    async with opened() as provider:
        with pytest.raises(TryLater, match="too much data"):
            await ask(provider)


async def test_endless_search_is_canceled_and_deleted(falcon, opened):
    falcon.polls = 10_000
    async with opened() as provider:
        with pytest.raises(TryLater, match="did not finish within"):
            await ask(provider)
    assert falcon.jobs == {}


async def test_no_events_without_a_view_is_an_error(opened):
    async with opened(event_repository="") as provider:
        with pytest.raises(Refused, match="event_repository"):
            await ask(provider)


# writing


async def test_comment_uses_the_append_action(falcon, opened, put):
    case = put()
    async with opened() as provider:
        for _ in range(2):
            await provider.comment(case.id, "Nothing was found.", "k:1")
    text = "Nothing was found.\n\n[tocsin k:1]"
    parameters = [{"name": "append_comment", "value": text}]
    assert falcon.changes == [{"composite_ids": [case.id], "action_parameters": parameters}]


async def test_long_comment_is_recognized_by_its_end(falcon, opened, put):
    case, words = put(), "Nothing was found. " * 1_000
    async with opened(write_back=True) as provider:
        for _ in range(2):
            await provider.comment(case.id, words, "k:1")
    assert len(falcon.siem.comments(case.id)) == 1


async def test_status_is_set_once(falcon, opened, put):
    case = put()
    async with opened() as provider:
        for _ in range(2):
            await provider.set_status(case.id, IncidentStatus.ACTIVE)
        incident = await provider.incident(case.id)
    assert len(falcon.changes) == 1
    assert incident.status is IncidentStatus.ACTIVE


async def test_writes_to_missing_objects_are_refused(opened):
    async with opened() as provider:
        with pytest.raises(Refused, match="alert nothing does not exist"):
            await provider.set_status("nothing", IncidentStatus.CLOSED)


# what is left out


@pytest.mark.parametrize(
    "case",
    [
        ({"product": "automated-lead", "type": "automated-lead"}, {}, False),
        ({"product": "automated-lead-context", "type": "signal"}, {}, False),
        ({"product": "automated-lead"}, {"excluded_products": []}, True),
        ({"product": "epp", "type": "ofp"}, {"excluded_types": ["ofp"]}, False),
        ({"show_in_ui": False}, {}, False),
        ({"show_in_ui": False}, {"hidden_alerts": True}, True),
        ({"product": "idp"}, {}, True),
    ],
)
async def test_leads_and_hidden_alerts_are_read_if_wanted(falcon, opened, put, case):
    falcon.members, given, is_read = case
    name = put().id
    async with opened(**given) as provider:
        assert await read(provider) == ([name] if is_read else [])
        assert await provider.incident(name) is not None


def test_delay_after_429_may_be_a_time_since_1970():
    now = datetime(2026, 11, 20, 8, tzinfo=UTC)
    at = str(int(now.timestamp()) + 90)
    assert retry_after({"X-RateLimit-RetryAfter": at}, now) == timedelta(seconds=90)
    assert retry_after({"X-RateLimit-RetryAfter": "30"}, now) is None
    both = {"X-RateLimit-RetryAfter": at, "Retry-After": "5"}
    assert retry_after(both, now) == timedelta(seconds=5)

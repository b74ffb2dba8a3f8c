"""Behavior specific to SecOps: ten lists a minute, creation, curated rules, feedback."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import replace
from datetime import timedelta

import pytest
from pydantic import ValidationError
from tests.connectors.secops.simulator import CURATED, SETTINGS, SecOpsSimulator

from tocsin import (
    Broken,
    CredentialsRefused,
    Entity,
    EntityKind,
    IncidentStatus,
    Refused,
    TryLater,
    Window,
)
from tocsin.testing import LogEvent, Siem, make_settings, open_provider
from tocsin.validation import explain_errors
from tocsin_connectors.siem.secops import SecOps, service_account

LIST = "legacy:legacySearchDetections"
ADDRESS = Entity(EntityKind.IP, "198.51.100.9")


async def read(provider, stream="new"):
    pages = [page async for page in provider.read(stream, None, provider.tools.clock.now())]
    return [incident.external_id for page in pages for incident in page.incidents]


async def ask(provider, entity=ADDRESS):
    now = provider.tools.clock.now()
    window = Window(now - timedelta(hours=1), now)
    return [event async for event in provider.events(entity, window, 10)]


# the sign-in


@pytest.mark.parametrize("region", ["us", "europe", "asia-southeast1"])
def test_region_sets_the_host(region):
    settings = make_settings(SecOps, **SETTINGS | {"region": region})
    assert settings.url == f"https://{region}-chronicle.googleapis.com"


@pytest.mark.parametrize("key", ["no JSON", "[]", "{}", '{"client_email": 1, "private_key": "x"}'])
async def test_invalid_key_is_refused_without_being_shown(instance, opened, key):
    async with opened(service_account=key) as provider:
        with pytest.raises(CredentialsRefused, match="not a Google service account key"):
            await provider.check()
    assert instance.requests == []


async def test_unknown_key_is_refused(instance, opened):
    other = SETTINGS["service_account"].replace("tocsin@", "another@")
    async with opened(service_account=other) as provider:
        with pytest.raises(CredentialsRefused, match="invalid_grant"):
            await provider.check()


async def test_key_is_read_once_and_kept_by_its_provider_alone(instance, opened, monkeypatch):
    parsed = []
    parse_key = service_account._parse_key
    monkeypatch.setattr(
        service_account, "_parse_key", lambda text: parsed.append(parse_key(text)) or parsed[-1]
    )
    async with opened() as provider:
        for _ in range(3):
            await provider.check()
            instance.forget()
            provider.tools.clock.advance(hours=2)
    assert sum(request.path == "/token" for request in instance.requests) == 3
    assert len(parsed) == 1
    assert not hasattr(parse_key, "cache_info")


@pytest.mark.parametrize("rule", ["ru_abc", "abc", "ur_"])
def test_invalid_curated_rule_is_reported(rule):
    with pytest.raises(ValidationError) as raised:
        make_settings(SecOps, **SETTINGS | {"curated_rules": [rule]})
    [mistake] = explain_errors(raised.value, SecOps.Settings, {"curated_rules": [rule]})
    assert mistake.found == f"found {rule!r}"
    assert mistake.expected.endswith("Each ID starts with ur_.")


# check


@pytest.mark.parametrize(
    "permission",
    [
        "chronicle.legacies.legacySearchDetections",
        "chronicle.legacies.legacySearchCuratedDetections",
        "chronicle.legacies.legacyGetAlert",
        "chronicle.legacies.legacyUpdateAlert",
        "chronicle.events.udmSearch",
    ],
)
async def test_missing_permission_is_reported(instance, opened, permission):
    instance.lacks = {permission}
    async with opened(write_back=True, curated_rules=[CURATED]) as provider:
        health = await provider.check()
    assert health.problems == (f"the service account lacks the permission {permission}",)


async def test_missing_curated_rule_is_reported(instance, opened):
    async with opened(curated_rules=[CURATED, "ur_typo"]) as provider:
        assert (await provider.check()).problems == ("the curated rule ur_typo does not exist",)
        instance.lacks = {"chronicle.curatedRules.get"}
        assert (await provider.check()).problems == ()


async def test_check_writes_nothing(instance, opened):
    async with opened(write_back=True) as provider:
        assert (await provider.check()).problems == ()
    assert instance.updates == []


# reading


async def test_lists_are_limited_to_ten_a_minute(instance, opened, put):
    instance.lists_per_minute = 10
    instance.most_per_page = 2
    names = {put().id for _ in range(60)}
    async with opened() as provider:
        assert set(await read(provider)) == names
    lists = [request for request in instance.requests if request.path.endswith(LIST)]
    assert len(lists) >= 30
    for asked in lists:
        soon = asked.at + timedelta(minutes=1)
        assert sum(asked.at <= list_.at < soon for list_ in lists) <= 10


async def test_exhausted_quota_is_waited_for(instance, opened, put, clock):
    instance.most_per_page = 2
    instance.lists_per_minute = 3
    names = {put().id for _ in range(20)}
    found, position = set(), None
    async with opened() as provider:
        for _ in range(20):
            try:
                async for page in provider.read("new", position, clock.now()):
                    position = page.next_position
                    found |= {incident.external_id for incident in page.incidents}
                break
            except TryLater:
                clock.advance(minutes=1)
    assert found == names


async def test_late_detections_are_read_by_creation_time(instance, opened, put):
    case = put()  # its detectionTime lies five hours before
    async with opened() as provider:
        assert await read(provider) == [case.id]
    assert {
        request.query["listBasis"] for request in instance.requests if request.path.endswith(LIST)
    } == {"CREATED_TIME"}


async def test_empty_response_is_valid_and_wrong_list_is_broken(instance, opened, monkeypatch):
    async with opened() as provider:
        assert await read(provider) == []

        monkeypatch.setattr(instance, "listed", lambda *_: instance.json({"findings": []}))
        with pytest.raises(Broken, match="without the list `detections`"):
            await read(provider)


async def test_too_large_response_is_requested_in_parts(instance, opened, put, clock):
    instance.truncates = True
    now = clock.now()
    times = [now - timedelta(minutes=10 * number) for number in range(1, 4)]
    names = {put(created_at=at, changed_at=at).id for at in times}
    found, position = set(), None
    async with opened() as provider:
        for _ in range(6):
            try:
                async for page in provider.read("new", position, provider.tools.clock.now()):
                    position = page.next_position
                    found |= {incident.external_id for incident in page.incidents}
            except Broken:
                continue
    assert found == names


async def test_curated_rules_are_requested_separately(instance, opened, put):
    own = put()
    curated = replace(own, id="de_curated")
    instance.curated[CURATED] = [curated]
    async with opened(curated_rules=[CURATED]) as provider:
        assert set(await read(provider)) == {own.id, curated.id}


async def test_curated_detections_are_read_by_default(instance, opened, put):
    own = put()
    names = {f"ur_{number}": f"de_of_{number}" for number in range(3)}
    instance.curated = {rule: [replace(own, id=name)] for rule, name in names.items()}
    async with opened() as provider:
        assert set(await read(provider)) == {own.id, *names.values()}
    async with opened(curated_detections=False) as provider:
        assert await read(provider) == [own.id]


async def test_rules_that_cannot_be_counted_are_reported(instance, opened, put):
    own = put()
    instance.curated[CURATED] = [replace(own, id="de_curated")]
    instance.lacks = {"counting curated detections"}
    async with opened() as provider:
        [problem] = (await provider.check()).problems
        assert await read(provider) == [own.id]
    assert "countAllCuratedRuleSetDetections returned 403" in problem
    permission = "chronicle.curatedRuleSetCategories.countAllCuratedRuleSetDetections"
    assert f"grant the permission {permission}" in problem
    assert permission in " ".join(SecOps.permissions)


async def test_check_says_which_wildcard_finds_curated_detections(instance, opened, put):
    async with opened() as provider:
        assert "no curated rule has detections" in (await provider.check()).detail
        case = replace(put(), id="de_curated")
        instance.curated[CURATED] = [case]
        assert "`-` finds nothing and `*` finds nothing" in (await provider.check()).detail
        instance.curated["*"] = [case]
        assert "`-` finds nothing and `*` works" in (await provider.check()).detail


def test_regional_endpoint_is_an_option():
    url = make_settings(SecOps, **SETTINGS | {"regional_endpoint": True}).url
    assert url == "https://chronicle.eu.rep.googleapis.com"


async def test_rules_can_be_removed_during_a_window(instance, opened, put, clock):
    own = put()
    instance.curated |= {name: [replace(own, id=f"de_of_{name}")] for name in ("ur_a", "ur_b")}
    async with opened(curated_rules=["ur_a", "ur_a", "ur_b"]) as provider:
        pages = provider.read("new", None, clock.now())
        async with aclosing(pages):  # up to the last rule, which is not asked for any more
            position = [(await anext(pages)).next_position for _ in range(3)][-1]
        assert position["token"][0] == "ur_b"
    async with opened(curated_rules=["ur_a"]) as provider:
        pages = [page async for page in provider.read("new", position, clock.now())]
    assert pages[-1].next_position["window"] is None


async def test_changes_of_old_detections_are_read(instance, opened, put, clock):
    long_ago = clock.now() - timedelta(days=3)
    case = put(created_at=long_ago, changed_at=long_ago)
    put(created_at=long_ago, changed_at=long_ago)  # nothing becomes of this one
    recently = clock.now() - timedelta(minutes=70)
    instance.siem.put(replace(case, status=IncidentStatus.CLOSED, changed_at=recently))
    async with opened() as provider:
        assert await read(provider) == []
        assert await read(provider, "changed") == [case.id]


async def test_one_list_serves_all_overdue_hours(instance, opened, put, clock):
    case, early = put(), clock.now() - timedelta(hours=20)
    old = put(created_at=early - timedelta(days=1), changed_at=early - timedelta(days=1))
    instance.siem.put(replace(old, status=IncidentStatus.CLOSED, changed_at=early))
    recently = clock.now() - timedelta(hours=1, minutes=4)
    late = put(created_at=early, changed_at=early)
    instance.siem.put(replace(late, status=IncidentStatus.ACTIVE, changed_at=recently))
    async with opened(first_fetch="24h") as provider:
        assert set(await read(provider, "changed")) == {old.id, late.id}
        assert sum(request.path.endswith(LIST) for request in instance.requests) == 1
        assert set(await read(provider)) == {case.id, late.id}


async def test_two_instances_are_read_concurrently(instance, opened, put, clock):
    async with SecOpsSimulator(Siem(clock)) as other:
        ours, theirs = put(), put(id="de_other")
        other.siem.put(theirs)
        another = {"url": other.url, "sign_in_url": other.url, "first_fetch": "2h", **SETTINGS}
        async with opened() as one, open_provider(SecOps, clock=clock, **another) as two:
            assert set(await read(one)) == {ours.id, theirs.id}
            assert await read(two) == [theirs.id]
            assert await two.incident(ours.id) is None


async def test_older_apis_are_not_used(instance, opened, put):
    case = put()
    async with opened() as provider:
        await read(provider)
        await provider.comment(case.id, "text", "key")
    assert {request.path.split("/")[1] for request in instance.requests} == {"token", "v1alpha"}


# events


async def test_event_has_user_and_action(instance, opened, clock):
    at = clock.now() - timedelta(minutes=7)
    entities = (ADDRESS, Entity(EntityKind.HOST, "laptop-7"))
    instance.siem.log(LogEvent(id="e1", occurred_at=at, entities=entities, text="denied"))
    async with opened() as provider:
        [event] = await ask(provider)
    assert event.summary == "NETWORK_CONNECTION of A firewall: 198.51.100.9, laptop-7: denied"
    assert event.external_id == "e1"


async def test_truncated_search_is_incomplete(instance, opened):
    instance.more_events = True
    async with opened() as provider:
        with pytest.raises(TryLater, match="events were searched; more match"):
            await ask(provider)


async def test_searches_are_limited_to_120_an_hour(instance, opened):
    async with opened() as provider:
        for _ in range(120):
            await ask(provider)
        with pytest.raises(TryLater) as caught:
            await ask(provider)
    assert timedelta(minutes=50) < caught.value.after <= timedelta(hours=1)
    assert sum(request.path.endswith(":udmSearch") for request in instance.requests) == 120


# writing


async def test_long_comment_is_recognized_by_its_end(instance, opened, put):
    case, words = put(), "Nothing was found. " * 1_000
    async with opened(write_back=True) as provider:
        for _ in range(2):
            await provider.comment(case.id, words, "k:1")
    assert len(instance.siem.comments(case.id)) == 1


async def test_comment_is_written_once_as_feedback(instance, opened, put):
    case = put()
    async with opened() as provider:
        for key in ("k:1", "k:2", "k:1"):
            await provider.comment(case.id, "Nothing was found.", key)
    assert [update["feedback"] for update in instance.updates] == [
        {"comment": f"Nothing was found.\n\n[tocsin {key}]"} for key in ("k:1", "k:2")
    ]


async def test_status_is_set_once(instance, opened, put):
    case = put()
    async with opened() as provider:
        for _ in range(2):
            await provider.set_status(case.id, IncidentStatus.ACTIVE)
        incident = await provider.incident(case.id)
    assert [update["feedback"] for update in instance.updates] == [{"status": "REVIEWED"}]
    assert incident.status is IncidentStatus.ACTIVE


async def test_writes_to_missing_objects_are_refused(opened):
    async with opened() as provider:
        with pytest.raises(Refused, match="alert de_0 does not exist"):
            await provider.set_status("de_0", IncidentStatus.CLOSED)

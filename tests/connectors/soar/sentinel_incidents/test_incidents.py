"""Behavior specific to Sentinel: ETags, classifications, comments instead of entities."""

from __future__ import annotations

from typing import Any

import pytest

from tocsin import (
    CredentialsRefused,
    EntityKind,
    IncidentDisposition,
    Misconfigured,
    Observable,
    TryLater,
)
from tocsin.testing.conformance.object_channel_harness import ADDRESSES, ObjectChannelHarness
from tocsin_connectors.soar.sentinel_incidents import SentinelIncidents

from .simulator import INCIDENTS
from .suite import Suite

CLOSING = {"close_when": "event_type == 'investigation-completed'"}


@pytest.fixture
async def harness():
    async with Suite().harness() as harness:
        yield harness


def set_to(harness: ObjectChannelHarness, **settings: Any) -> None:
    harness.channel = SentinelIncidents(harness.checked_settings(**settings), harness.channel.tools)


def properties(harness: ObjectChannelHarness) -> dict[str, Any]:
    [incident] = harness.simulator.incidents.values()
    return incident["properties"]


def sign_ins(harness: ObjectChannelHarness) -> int:
    return sum(asked.path.endswith("/token") for asked in harness.simulator.requests)


async def test_token_is_used_until_shortly_before_expiry(harness: ObjectChannelHarness):
    await harness.bring(harness.alert())
    harness.clock.advance(minutes=50)
    await harness.bring(harness.alert())
    assert sign_ins(harness) == 1
    harness.clock.advance(minutes=10)
    await harness.bring(harness.alert())
    assert sign_ins(harness) == 2


@pytest.mark.parametrize("wrong", ["client_id", "client_secret"])
async def test_unknown_app_is_misconfigured(harness: ObjectChannelHarness, wrong):
    set_to(harness, **{wrong: "wrong"})
    with pytest.raises(CredentialsRefused, match="AADSTS"):
        await harness.attempt(harness.alert())


async def test_missing_workspace_is_misconfigured(harness: ObjectChannelHarness):
    set_to(harness, workspace="elsewhere")
    with pytest.raises(Misconfigured, match="workspace does not exist"):
        await harness.attempt(harness.alert())


async def test_retry_keeps_changes_of_analysts(harness: ObjectChannelHarness):
    await harness.bring(harness.alert())
    harness.simulator.change(harness.objects[0].id, title="Theirs", status="Active")
    await harness.bring(harness.alert(), remember=False)
    harness.restart()
    await harness.bring(harness.alert())
    assert (properties(harness)["title"], properties(harness)["status"]) == ("Theirs", "Active")


async def test_closing_keeps_changes_of_analysts(harness: ObjectChannelHarness):
    set_to(harness, **CLOSING)
    await harness.bring(harness.alert())
    harness.simulator.change(harness.objects[0].id, severity="Low", labels=[{"labelName": "vip"}])
    harness.simulator.races = 1
    await harness.bring(harness.completed("incident:7"))
    told = properties(harness)
    assert (told["status"], told["classification"]) == ("Closed", "Undetermined")
    assert (told["severity"], told["labels"]) == ("Low", [{"labelName": "vip"}])
    assert told["owner"] == {"assignedTo": "Ann"}
    assert told["classificationComment"].startswith("Closed by Tocsin")


async def test_constantly_changing_incident_is_closed_later(harness: ObjectChannelHarness):
    set_to(harness, **CLOSING)
    await harness.bring(harness.alert())
    harness.simulator.races = 2
    event = harness.completed("incident:7")
    with pytest.raises(TryLater, match="at the same time"):
        await harness.attempt(event)
    await harness.bring(event)
    assert not harness.objects[0].is_open
    assert len(harness.objects[0].notes) == 1


async def test_classification_has_a_reason(harness: ObjectChannelHarness):
    set_to(harness, closed_classification="FalsePositive-InaccurateData", **CLOSING)
    await harness.bring(harness.completed())
    told = properties(harness)
    assert told["classification"] == "FalsePositive"
    assert told["classificationReason"] == "InaccurateData"


async def test_classification_follows_the_disposition(harness: ObjectChannelHarness):
    own = {"benign-true-positive": "BenignPositive-SuspiciousButExpected"}
    set_to(harness, close_when="data.disposition", follow_changes=True, close_as=own)
    receipt = await harness.bring(harness.alert())
    disposition = IncidentDisposition.BENIGN_TRUE_POSITIVE
    await harness.channel.close_as(receipt.remote_id, "over", disposition)
    assert properties(harness)["classification"] == "BenignPositive"
    assert properties(harness)["classificationReason"] == "SuspiciousButExpected"


async def test_conflict_with_invisible_incident_is_tried_later(harness: ObjectChannelHarness):
    harness.simulator.conflicts = True
    with pytest.raises(TryLater, match="conflict"):
        await harness.attempt(harness.alert())


def hosts(*numbers: int, length: int = 0) -> list[Observable]:
    names = [f"host-{number}.example.com".ljust(length, "x") for number in numbers]
    return [Observable(EntityKind.HOST, name, "Host") for name in names]


async def test_entities_are_listed_once_in_comments(harness: ObjectChannelHarness):
    await harness.bring(harness.alert())
    identifier = harness.objects[0].id
    assert await harness.channel.add_observables(identifier, hosts(1, 2)) == 2
    assert await harness.channel.add_observables(identifier, hosts(2, 3)) == 1
    added = [f"host-{item}.example.com" for item in (1, 2, 3)]
    assert list(harness.objects[0].observables) == [*ADDRESSES, *added]
    assert f"- Ip `{ADDRESSES[0]}` #" in harness.simulator.texts(identifier)[0]


async def test_long_entity_list_spans_comments(harness: ObjectChannelHarness):
    await harness.bring(harness.alert())
    many = hosts(*range(50), length=1_900)
    assert await harness.channel.add_observables(harness.objects[0].id, many) == 50
    assert await harness.channel.add_observables(harness.objects[0].id, many) == 0
    assert len(harness.objects[0].observables) == 52


async def test_entities_are_escaped_to_one_line(harness: ObjectChannelHarness):
    await harness.bring(harness.alert())
    identifier = harness.objects[0].id
    hostile = [Observable(EntityKind.FILE, "`\n- x <img src=//evil.example.com>", "File")]
    for added in (1, 0):
        assert await harness.channel.add_observables(identifier, hostile) == added
    assert (
        "- File `' - x &lt;img src=//evil.example.com&gt;` #"
        in harness.simulator.texts(identifier)[1]
    )


async def test_long_report_is_truncated_with_marker(
    harness: ObjectChannelHarness,
):
    await harness.bring(harness.alert())
    identifier = harness.objects[0].id
    await harness.channel.add_note(
        identifier, "Report", "\U0001f6a8" * 20_000 + "\n\nTocsin event evt_7"
    )
    [note] = harness.objects[0].notes
    assert note.startswith("**Report**")
    assert note.endswith("\n\nTocsin event evt_7")


async def test_check_reports_missing_read_access(harness: ObjectChannelHarness):
    harness.simulator.lacks = {"Microsoft.Authorization/permissions/read"}
    [problem] = (await harness.channel.check()).problems
    assert "Microsoft.Authorization/permissions/read" in problem


@pytest.mark.parametrize(
    ("cloud", "management", "authority", "portal"),
    [
        ("public", "management.azure.com", "login.microsoftonline.com", "portal.azure.com"),
        ("usgov", "management.usgovcloudapi.net", "login.microsoftonline.us", "portal.azure.us"),
        ("china", "management.chinacloudapi.cn", "login.chinacloudapi.cn", "portal.azure.cn"),
    ],
)
async def test_each_cloud_has_its_own_endpoints(
    harness: ObjectChannelHarness, cloud, management, authority, portal
):
    given = Suite().settings("") | {"cloud": cloud}
    del given["url"], given["authority"]
    harness.suite.settings = lambda _: given
    settings = harness.checked_settings()
    assert (settings.url, settings.authority) == (f"https://{management}", f"https://{authority}")
    channel = SentinelIncidents(settings, harness.channel.tools)
    asset = "#asset/Microsoft_Azure_Security_Insights/Incident"
    assert channel.link("7") == f"https://{portal}/{asset}{INCIDENTS}/7"

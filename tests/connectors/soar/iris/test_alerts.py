"""Behavior specific to IRIS: numeric IDs, IOCs that are replaced, 400 for every error."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tocsin import Broken, EntityKind, Misconfigured, Observable, Refused
from tocsin.testing.conformance.object_channel_harness import ADDRESSES, ObjectChannelHarness
from tocsin_connectors.soar.iris.iocs import get_ioc_type

from .simulator import (
    CUSTOMER,
    CUSTOMERS,
    ME,
    SEVERITIES,
    STATUSES,
    TLPS,
    TYPES,
)
from .suite import Suite


@pytest.fixture
async def harness():
    async with Suite().harness() as harness:
        yield harness


def only(harness: ObjectChannelHarness) -> dict:
    [alert] = harness.simulator.alerts.values()
    return alert


def later(harness: ObjectChannelHarness, *entities: tuple[str, str]):
    """Return another alert of the same incident, with these entities beside its own."""
    event = harness.alert()
    known = [{"kind": "ip", "value": address} for address in ADDRESSES]
    told = [*known, *({"kind": kind, "value": value} for kind, value in entities)]
    return replace(event, context={"incident": {**event.context["incident"], "entities": told}})


async def test_names_are_resolved_to_ids(harness: ObjectChannelHarness):
    event = harness.alert()
    await harness.bring(event)
    made = only(harness)
    assert made["alert_source_ref"] == event.key
    assert made["alert_severity_id"] == SEVERITIES["High"]
    assert made["alert_status_id"] == STATUSES["New"]
    assert made["alert_customer_id"] == CUSTOMERS[CUSTOMER]
    assert {ioc["ioc_type_id"] for ioc in made["iocs"]} == {TYPES["ip-any"]}
    assert {ioc["ioc_tlp_id"] for ioc in made["iocs"]} == {TLPS["amber"]}


async def test_ids_are_cached_and_new_names_are_found(harness: ObjectChannelHarness, monkeypatch):
    harness.use(tlp="mauve")
    with pytest.raises(Misconfigured, match="TLP 'mauve' does not exist"):
        await harness.attempt(harness.alert())
    monkeypatch.setitem(TLPS, "mauve", 1_000)
    await harness.bring(harness.alert())
    assert only(harness)["iocs"][0]["ioc_tlp_id"] == 1_000
    harness.simulator.requests.clear()
    await harness.bring(harness.failed(1))
    assert not [
        request.path
        for request in harness.simulator.requests
        if request.path.startswith("/manage/")
    ]


@pytest.mark.parametrize(
    ("kind", "value", "called"),
    [
        (EntityKind.FILE_HASH, "a" * 64, "sha256"),
        (EntityKind.FILE_HASH, "a" * 32, "md5"),
        (EntityKind.FILE_HASH, "a" * 7, "other"),
        (EntityKind.MAILBOX, "ana@example.com", "email"),
        (EntityKind.PROCESS, "sh", "other"),
    ],
)
def test_ioc_type_follows_entity_kind(kind, value, called):
    assert get_ioc_type(Observable(kind, value, "99")) == called


async def test_missing_ioc_type_is_other(harness: ObjectChannelHarness):
    await harness.bring(later(harness, ("cve", "CVE-2026-1234")))
    assert only(harness)["iocs"][-1]["ioc_type_id"] == TYPES["other"]


async def test_value_refused_by_its_type_is_other(harness: ObjectChannelHarness):
    harness.simulator.patterns = {"hostname": "[a-z.]+"}
    await harness.bring(later(harness, ("host", "WIN 7")))
    assert {ioc["ioc_type_id"] for ioc in only(harness)["iocs"]} == {TYPES["other"]}


async def test_later_iocs_are_added_to_existing_ones(harness: ObjectChannelHarness):
    await harness.bring(harness.alert())
    mine = {"ioc_value": "203.0.113.99", "ioc_type_id": TYPES["ip-any"], "ioc_id": 7_000}
    only(harness)["iocs"].append(
        {**mine, "ioc_tlp_id": TLPS["red"], "ioc_description": "an analyst's"}
    )
    before = [ioc["ioc_id"] for ioc in only(harness)["iocs"]]
    await harness.bring(later(harness, ("host", "vpn-1.example.com")))
    after = {ioc["ioc_id"]: ioc for ioc in only(harness)["iocs"]}
    assert list(after)[:-1] == before
    assert after[7_000]["ioc_tlp_id"] == TLPS["red"]
    assert after[7_000]["ioc_description"] == "an analyst's"
    assert list(after.values())[-1]["ioc_value"] == "vpn-1.example.com"


@pytest.mark.parametrize("owner", [None, 12])
async def test_owner_is_kept(harness: ObjectChannelHarness, owner):
    await harness.bring(harness.alert())
    only(harness)["alert_owner_id"] = owner
    await harness.bring(later(harness, ("host", "vpn-1.example.com")))
    assert only(harness)["alert_owner_id"] == owner != ME


async def test_rejected_iocs_do_not_block(harness: ObjectChannelHarness):
    await harness.bring(harness.alert())
    harness.simulator.takes_iocs = False
    receipt = await harness.bring(later(harness, ("host", "vpn-1.example.com")))
    assert b'"observables":0' in receipt.response


async def test_alert_stored_before_an_error_is_found(harness: ObjectChannelHarness):
    harness.simulator.next_error = "'NoneType' object has no attribute 'alert_id'"
    receipt = await harness.attempt(harness.alert())
    assert receipt.remote_id == str(only(harness)["alert_id"])


async def test_unavailable_database_is_tried_again(harness: ObjectChannelHarness):
    harness.simulator.next_error = "(psycopg2.OperationalError) server closed the connection"
    with pytest.raises(Broken):
        await harness.attempt(harness.alert())
    await harness.bring(harness.alert())
    assert len(harness.objects) == 1


async def test_invalid_request_is_refused_with_reason(harness: ObjectChannelHarness):
    await harness.bring(harness.alert())
    harness.simulator.next_error = "{'iocs': ['Not a valid list.']}"
    with pytest.raises(Refused, match="Not a valid list") as refused:
        await harness.attempt(later(harness, ("host", "vpn-1.example.com")))
    assert not isinstance(refused.value, Misconfigured)


async def test_partial_reference_match_is_ignored(harness: ObjectChannelHarness):
    await harness.bring(harness.alert())
    template, key = only(harness), only(harness)["alert_source_ref"]
    only(harness)["alert_source_ref"] = f"{key}0"
    for number in range(1, 150):
        harness.simulator.alerts[number] = {**template, "alert_id": number}
    harness.known.clear()
    await harness.bring(harness.alert())
    [*_, made] = harness.simulator.alerts.values()
    assert made["alert_source_ref"] == key
    made_before = len(harness.objects)
    harness.known.clear()
    await harness.bring(harness.alert())
    assert len(harness.objects) == made_before, "it is on the second page"


async def test_closing_keeps_the_note():
    async with Suite().harness(close_recovered=True) as harness:
        await harness.bring(harness.failed(1))
        only(harness)["alert_note"] = "an analyst's"
        await harness.bring(harness.completed())
        failed = next(iter(harness.simulator.alerts.values()))
        assert failed["alert_status_id"] == STATUSES["Closed"]
        assert failed["alert_note"].startswith("an analyst's\n\nA later run")


async def test_alert_in_a_case_is_not_closed(harness: ObjectChannelHarness):
    harness.use(close_when="event_type == 'investigation-completed'")
    await harness.bring(harness.alert())
    only(harness)["alert_status_id"] = STATUSES["Merged"]
    await harness.bring(harness.completed("incident:7"))
    assert only(harness)["alert_status_id"] == STATUSES["Merged"]
    assert len(harness.objects[0].notes) == 1

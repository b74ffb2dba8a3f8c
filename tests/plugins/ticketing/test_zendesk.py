"""Zendesk tracker: channel conformance and specific behavior."""

from __future__ import annotations

import pytest

from tocsin import Idempotency, Misconfigured, TryLater
from tocsin.testing import Fault
from tocsin.testing.conformance import ObjectChannelConformance, ObjectChannelHarness
from tocsin_plugins.ticketing import Ticketing

from .zendesk_simulator import GROUP, TOKEN, USER, ZendeskSimulator


class TestZendesk(ObjectChannelConformance):
    channel = Ticketing
    simulator = ZendeskSimulator
    idempotency = Idempotency.NATIVE
    permissions = ZendeskSimulator.permissions

    def settings(self, url):
        signed = {"username": USER, "secret": TOKEN}
        return {"tracker": "zendesk", "url": url, "project": GROUP, **signed}


@pytest.fixture
async def harness():
    own = {
        "labels": ["soc"],
        "assignee": "j.doe@example.com",
        "issue_type": "problem",
        "priorities": {"High": "urgent"},
        "fields": {"360": "data.provider", "due_at": "'2026-11-30'"},
        "options": {"requester": "soc@example.com"},
    }
    async with TestZendesk().harness(**own) as harness:
        yield harness


async def test_a_ticket_has_what_the_operator_set(harness: ObjectChannelHarness):
    receipt = await harness.bring(harness.alert())
    [ticket] = harness.simulator.tickets.values()
    assert ticket["tags"] == ["tocsin", "soc"]
    assert (ticket["type"], ticket["priority"], ticket["group_id"]) == ("problem", "urgent", 12)
    assert ticket["assignee_email"] == "j.doe@example.com"
    assert ticket["requester"]["email"] == "soc@example.com"
    assert ticket["custom_fields"] == [{"id": 360, "value": "test"}]
    assert ticket["due_at"] == "2026-11-30"
    assert not ticket["comments"][0]["public"]
    assert receipt.remote_url == f"{harness.simulator.url}/agent/tickets/{ticket['id']}"


async def test_a_token_of_oauth_needs_no_name(harness: ObjectChannelHarness):
    harness.use(username=None)
    await harness.bring(harness.alert())
    assert len(harness.objects) == 1


async def test_a_change_that_changes_nothing_is_not_made(harness: ObjectChannelHarness):
    alert = harness.alert()
    await harness.bring(alert)
    await harness.bring(alert)
    assert not [request for request in harness.simulator.requests if request.method == "PUT"]


async def test_a_closed_ticket_gets_a_follow_up(harness: ObjectChannelHarness):
    alert = harness.alert()
    await harness.bring(alert)
    [ticket] = harness.simulator.tickets.values()
    ticket["status"] = "closed"
    harness.clock.advance(hours=1)
    await harness.bring(alert)
    [_, second] = harness.simulator.tickets.values()
    assert second["via_followup_source_id"] == ticket["id"]
    await harness.bring(alert)
    assert len(harness.objects) == 2


async def test_what_was_deleted_within_the_hours_of_its_key_is_made_anew(
    harness: ObjectChannelHarness,
):
    alert = harness.alert()
    await harness.bring(alert)
    harness.simulator.remove(harness.objects[0].id)
    receipt = await harness.bring(alert)
    assert [object_.id for object_ in harness.objects] == [receipt.remote_id]


async def test_what_was_made_before_its_key_was_forgotten_is_found(harness: ObjectChannelHarness):
    alert = harness.alert()
    await harness.bring(alert, remember=False)
    harness.clock.advance(hours=3)
    await harness.bring(alert)
    assert len(harness.objects) == 1


async def test_other_settings_after_an_answer_that_was_lost_make_no_other_request_fail(
    harness: ObjectChannelHarness,
):
    alert = harness.alert()
    harness.simulator.fail(Fault.LOST, after=4)
    with pytest.raises(TryLater):
        await harness.attempt(alert)
    assert len(harness.objects) == 1
    harness.use(priorities={"High": "low"})
    harness.clock.advance(minutes=1)
    await harness.bring(alert)
    assert len(harness.objects) == 1


async def test_a_change_of_another_is_not_overwritten(harness: ObjectChannelHarness):
    await harness.bring(harness.failed(1))
    told = harness.failed(2)
    harness.simulator.meanwhile = 1
    with pytest.raises(TryLater) as raised:
        await harness.attempt(told)
    assert raised.value.partly
    await harness.bring(told)
    assert len(harness.objects[0].notes) == 1


async def test_a_long_comment_of_wide_characters_is_shortened_and_keeps_its_event(
    harness: ObjectChannelHarness,
):
    await harness.bring(harness.failed(1))
    number = harness.objects[0].id
    await harness.channel.tracker.add_note(
        number, "😀\n" * 15_000 + "\n\n[Tocsin](x)\n\nevent evt_1"
    )
    assert harness.objects[0].notes[0].endswith("event evt_1")
    assert "shortened" in harness.objects[0].notes[0]


async def test_an_unknown_group_waits_for_the_operator(harness: ObjectChannelHarness):
    harness.use(project="security")
    with pytest.raises(Misconfigured, match="the group security does not exist"):
        await harness.attempt(harness.alert())
    [problem] = (await harness.channel.check()).problems
    assert problem == "project: the group security does not exist"


async def test_a_group_can_be_named_by_its_number(harness: ObjectChannelHarness):
    harness.use(project="12")
    await harness.bring(harness.alert())
    assert not (await harness.channel.check()).problems


async def test_what_is_required_to_solve_is_named_where_tickets_are_closed(
    harness: ObjectChannelHarness,
):
    harness.use(fields={"999": "1"})
    missing = "fields.999: this field does not exist in Zendesk"
    assert (await harness.channel.check()).problems == (missing,)
    harness.use(fields={}, close_recovered=True)
    [problem] = (await harness.channel.check()).problems
    assert problem == "the field Source is required to solve tickets: set fields.360"


async def test_nothing_is_a_placeholder(harness: ObjectChannelHarness):
    await harness.bring(harness.alert(title="{{ticket.requester.email}} {% assign x = 1 %}"))
    [ticket] = harness.simulator.tickets.values()
    assert ticket["subject"] == "{ {ticket.requester.email}} { % assign x = 1 %}"

"""The contract of a channel, kept with Zendesk, and what only Zendesk has."""

from __future__ import annotations

import pytest

from tocsin import Idempotency, Misconfigured, TryLater
from tocsin.testing import Fault
from tocsin.testing.conformance import ChannelConformance, ChannelHarness
from tocsin_plugins.ticketing import Ticketing

from .zendesk_simulator import GROUP, TOKEN, USER, ZendeskSimulator


class TestZendesk(ChannelConformance):
    channel = Ticketing
    simulator = ZendeskSimulator
    idempotency = Idempotency.NATIVE
    permissions = ZendeskSimulator.permissions

    def settings(self, url):
        signed = {"username": USER, "secret": TOKEN}
        return {"tracker": "zendesk", "url": url, "project": GROUP, **signed}


@pytest.fixture
async def lab():
    own = {
        "labels": ["soc"],
        "assignee": "j.doe@example.com",
        "issue_type": "problem",
        "priorities": {"High": "urgent"},
        "fields": {"360": "data.provider", "due_at": "'2026-11-30'"},
        "options": {"requester": "soc@example.com"},
    }
    async with TestZendesk().harness(**own) as lab:
        yield lab


async def test_a_ticket_has_what_the_operator_set(lab: ChannelHarness):
    receipt = await lab.bring(lab.alert())
    [ticket] = lab.simulator.tickets.values()
    assert ticket["tags"] == ["tocsin", "soc"]
    assert (ticket["type"], ticket["priority"], ticket["group_id"]) == ("problem", "urgent", 12)
    assert ticket["assignee_email"] == "j.doe@example.com"
    assert ticket["requester"]["email"] == "soc@example.com"
    assert ticket["custom_fields"] == [{"id": 360, "value": "test"}]
    assert ticket["due_at"] == "2026-11-30"
    assert not ticket["comments"][0]["public"]
    assert receipt.remote_url == f"{lab.simulator.url}/agent/tickets/{ticket['id']}"


async def test_a_token_of_oauth_needs_no_name(lab: ChannelHarness):
    lab.use(username=None)
    await lab.bring(lab.alert())
    assert len(lab.objects) == 1


async def test_a_change_that_changes_nothing_is_not_made(lab: ChannelHarness):
    alert = lab.alert()
    await lab.bring(alert)
    await lab.bring(alert)
    assert not [request for request in lab.simulator.requests if request.method == "PUT"]


async def test_a_closed_ticket_gets_a_follow_up(lab: ChannelHarness):
    alert = lab.alert()
    await lab.bring(alert)
    [ticket] = lab.simulator.tickets.values()
    ticket["status"] = "closed"
    lab.clock.advance(hours=1)
    await lab.bring(alert)
    [_, second] = lab.simulator.tickets.values()
    assert second["via_followup_source_id"] == ticket["id"]
    await lab.bring(alert)
    assert len(lab.objects) == 2


async def test_what_was_deleted_within_the_hours_of_its_key_is_made_anew(lab: ChannelHarness):
    alert = lab.alert()
    await lab.bring(alert)
    lab.simulator.remove(lab.objects[0].id)
    receipt = await lab.bring(alert)
    assert [object_.id for object_ in lab.objects] == [receipt.remote_id]


async def test_what_was_made_before_its_key_was_forgotten_is_found(lab: ChannelHarness):
    alert = lab.alert()
    await lab.bring(alert, remember=False)
    lab.clock.advance(hours=3)
    await lab.bring(alert)
    assert len(lab.objects) == 1


async def test_other_settings_after_an_answer_that_was_lost_make_no_other_request_fail(
    lab: ChannelHarness,
):
    alert = lab.alert()
    lab.simulator.fail(Fault.LOST, after=4)
    with pytest.raises(TryLater):
        await lab.attempt(alert)
    assert len(lab.objects) == 1
    lab.use(priorities={"High": "low"})
    lab.clock.advance(minutes=1)
    await lab.bring(alert)
    assert len(lab.objects) == 1


async def test_a_change_of_another_is_not_overwritten(lab: ChannelHarness):
    await lab.bring(lab.failed(1))
    told = lab.failed(2)
    lab.simulator.meanwhile = 1
    with pytest.raises(TryLater) as raised:
        await lab.attempt(told)
    assert raised.value.partly
    await lab.bring(told)
    assert len(lab.objects[0].notes) == 1


async def test_a_long_comment_of_wide_characters_is_shortened_and_keeps_its_event(
    lab: ChannelHarness,
):
    await lab.bring(lab.failed(1))
    number = lab.objects[0].id
    await lab.channel.tracker.comment(number, "😀\n" * 15_000 + "\n\n[Tocsin](x)\n\nevent evt_1")
    assert lab.objects[0].notes[0].endswith("event evt_1")
    assert "shortened" in lab.objects[0].notes[0]


async def test_an_unknown_group_waits_for_the_operator(lab: ChannelHarness):
    lab.use(project="security")
    with pytest.raises(Misconfigured, match="no group security"):
        await lab.attempt(lab.alert())
    [problem] = (await lab.channel.check()).problems
    assert problem == "project: there is no group security"


async def test_a_group_can_be_named_by_its_number(lab: ChannelHarness):
    lab.use(project="12")
    await lab.bring(lab.alert())
    assert not (await lab.channel.check()).problems


async def test_what_is_required_to_solve_is_named_where_tickets_are_closed(lab: ChannelHarness):
    lab.use(fields={"999": "1"})
    assert (await lab.channel.check()).problems == ("fields.999: there is no such field",)
    lab.use(fields={}, close_recovered=True)
    [problem] = (await lab.channel.check()).problems
    assert problem == "the field Source is required to solve: give fields.360"


async def test_nothing_is_a_placeholder(lab: ChannelHarness):
    await lab.bring(lab.alert(title="{{ticket.requester.email}} {% assign x = 1 %}"))
    [ticket] = lab.simulator.tickets.values()
    assert ticket["subject"] == "{ {ticket.requester.email}} { % assign x = 1 %}"

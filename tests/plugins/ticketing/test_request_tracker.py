"""Request Tracker: channel conformance and specific behavior."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin import Idempotency, Misconfigured
from tocsin.testing.conformance import ObjectChannelConformance, ObjectChannelHarness
from tocsin_plugins.ticketing import Ticketing
from tocsin_plugins.ticketing.request_tracker.fields import quote_value

from .rt_simulator import _CONDITION, QUEUE, TOKEN, RTSimulator, _unquoted

FIELDS = {"Source": "data.provider"}


class TestRequestTracker(ObjectChannelConformance):
    """With the key in a custom field."""

    channel = Ticketing
    simulator = RTSimulator
    idempotency = Idempotency.SEARCH
    permissions = RTSimulator.permissions

    def settings(self, url):
        own = {"fields": FIELDS, "options": {"key_field": "Tocsin"}}
        signed = {"url": url, "secret": TOKEN, "project": QUEUE}
        return {"tracker": "request-tracker", **signed, **own}


class TestRequestTrackerWithoutAField(TestRequestTracker):
    """With the key in the subject."""

    scenarios = ObjectChannelConformance.scenarios[:1]

    def settings(self, url):
        return {**super().settings(url), "options": {}}


@pytest.fixture
async def harness():
    own = {
        "assignee": "j.doe",
        "labels": ["soc", "tocsin"],
        "priorities": {"High": "70"},
        "fields": {**FIELDS, "Due": "'2026-11-30'"},
        "options": {
            "key_field": "Tocsin",
            "labels_field": "Labels",
            "requestor": "soc@example.com",
        },
    }
    async with TestRequestTracker().harness(**own) as harness:
        yield harness


async def test_a_ticket_has_what_the_operator_set(harness: ObjectChannelHarness):
    receipt = await harness.bring(harness.alert())
    [ticket] = harness.simulator.tickets.values()
    assert (ticket["Owner"], ticket["Priority"]) == ("j.doe", 70)
    assert ticket["Due"] == "2026-11-30T00:00:00Z"
    assert ticket["Requestor"] == "soc@example.com"
    assert ticket["CustomFields"]["Labels"] == ["soc", "tocsin"]
    assert ticket["CustomFields"]["Source"] == "test"
    assert ticket["Subject"] == "Port scan"
    home = harness.simulator.url
    assert receipt.remote_url == f"{home}/Ticket/Display.html?id={ticket['id']}"


async def test_without_a_field_the_subject_ends_with_the_key(harness: ObjectChannelHarness):
    harness.use(options={}, labels=[])
    await harness.bring(harness.alert(title="long " * 100))
    [ticket] = harness.simulator.tickets.values()
    assert ticket["Subject"].endswith("]")
    assert len(ticket["Subject"]) < 200


async def test_a_deleted_ticket_is_made_anew(harness: ObjectChannelHarness):
    alert = harness.alert()
    await harness.bring(alert)
    harness.simulator.tickets[harness.objects[0].id]["Status"] = "deleted"
    await harness.bring(alert)
    assert len(harness.objects) == 2


async def test_a_change_that_another_came_before_is_made_once_more(harness: ObjectChannelHarness):
    harness.use(close_when="event_type == 'investigation-completed'")
    await harness.bring(harness.alert())
    harness.simulator.meanwhile = 1
    await harness.bring(harness.completed("incident:7"))
    assert not harness.objects[0].is_open


async def test_a_change_that_changes_nothing_is_not_made(harness: ObjectChannelHarness):
    alert = harness.alert()
    await harness.bring(alert)
    await harness.bring(alert)
    assert not [request for request in harness.simulator.requests if request.method == "PUT"]
    harness.use(priorities={"High": "90"})
    await harness.bring(alert)
    assert harness.simulator.tickets[harness.objects[0].id]["Priority"] == 90


@pytest.mark.parametrize(
    ("expression", "due"),
    [
        ("'2026-11-30T12:00:00.5+02:00'", "2026-11-30T10:00:00Z"),
        ("'2026-11-30T12:00:00'", "2026-11-30T12:00:00Z"),
        ("1795262400", "2026-11-21T12:00:00Z"),
    ],
)
async def test_dates_are_written_as_rt_reads_them(harness: ObjectChannelHarness, expression, due):
    harness.use(fields={**FIELDS, "Due": expression})
    await harness.bring(harness.alert())
    [ticket] = harness.simulator.tickets.values()
    assert ticket["Due"] == due


async def test_a_date_that_cannot_be_read_is_refused_before_anything_is_written(
    harness: ObjectChannelHarness,
):
    harness.use(fields={**FIELDS, "Due": "'next week'"})
    with pytest.raises(Misconfigured, match=r"fields.Due: found 'next week'; use a date"):
        await harness.attempt(harness.alert())
    assert harness.objects == []


async def test_a_date_that_rt_does_not_set_is_reported(harness: ObjectChannelHarness):
    alert = harness.alert()
    await harness.bring(alert)
    harness.use(fields={**FIELDS, "Due": "'2026-12-24'"})
    harness.simulator.locked = True
    with pytest.raises(Misconfigured, match=r"has Due '2026-11-30.* Permission Denied"):
        await harness.attempt(alert)


async def test_the_comment_on_a_change_comes_after_it(harness: ObjectChannelHarness):
    harness.use(close_when="event_type == 'incident-alert'")
    harness.simulator.locked = True
    with pytest.raises(Misconfigured, match="is still new"):
        await harness.attempt(harness.alert())
    assert harness.objects[0].notes == []
    harness.simulator.locked = False
    await harness.bring(harness.alert())
    [ticket] = harness.simulator.tickets.values()
    assert [entry["Type"] for entry in ticket["history"]][-2:] == ["Set", "Comment"]


async def test_a_ticket_that_rt_leaves_open_is_not_said_to_be_closed(harness: ObjectChannelHarness):
    harness.use(close_when="event_type == 'incident-alert'")
    harness.simulator.locked = True
    with pytest.raises(Misconfigured, match=r"is still new: .*Permission Denied"):
        await harness.attempt(harness.alert())


async def test_a_comment_is_plain_text_under_a_subject_that_names_its_event(
    harness: ObjectChannelHarness,
):
    await harness.bring(harness.failed(1))
    told = harness.failed(2)
    await harness.bring(told)
    [ticket] = harness.simulator.tickets.values()
    [comment] = [entry for entry in ticket["history"] if entry["Type"] == "Comment"]
    event = f"Tocsin event {told.id}"
    assert comment["Data"] == f"Tocsin: scheduled investigation failed ({event})"
    assert comment["Content"].endswith(event)
    assert "**" not in comment["Content"]


async def test_a_comment_is_found_behind_a_long_history(harness: ObjectChannelHarness):
    await harness.bring(harness.failed(1))
    told = harness.failed(2)
    await harness.bring(told)
    [ticket] = harness.simulator.tickets.values()
    ticket["history"] += [
        {"id": 1000 + number, "Type": "Set", "Data": None} for number in range(250)
    ]
    await harness.bring(told)
    assert len(harness.objects[0].notes) == 1


async def test_the_check_names_what_rt_would_pass_over_in_silence(harness: ObjectChannelHarness):
    harness.use(fields={}, options={"key_field": "Tocsn"})
    found = (await harness.channel.check()).problems
    assert [problem.partition(",")[0] for problem in found] == [
        f"the custom field Tocsn does not apply to {QUEUE}",
        "the custom field Source is mandatory: set fields.Source",
        "labels: set options.labels_field to the custom field that contains them",
    ]


async def test_no_ticket_is_made_without_its_key(harness: ObjectChannelHarness):
    harness.use(options={"key_field": "Tocsn"}, labels=[])
    with pytest.raises(Misconfigured, match="Tocsn does not apply to"):
        await harness.attempt(harness.alert())
    assert not harness.objects


async def test_a_ticket_that_could_not_be_given_its_key_is_told_of(harness: ObjectChannelHarness):
    harness.simulator.lacks = {"ModifyCustomField"}
    with pytest.raises(Misconfigured, match="ticket 1 has no value in Tocsin"):
        await harness.attempt(harness.alert())


async def test_a_queue_that_is_not_there_waits_for_the_operator(harness: ObjectChannelHarness):
    harness.use(project="Elsewhere")
    for doing in (harness.attempt(harness.alert()), harness.channel.check()):
        with pytest.raises(Misconfigured):
            await doing


@given(st.text(max_size=30))
def test_whatever_a_text_holds_it_is_one_value_of_a_query(text):
    found = _CONDITION.fullmatch(f"Subject LIKE {quote_value(text)}".replace("\n", " "))
    assert found
    assert _unquoted(found["value"]) == text.replace("\n", " ")

"""Customers of alerts, and checks of unknown names."""

from __future__ import annotations

import pytest

from tocsin import Misconfigured
from tocsin.testing.conformance.object_channel_harness import ObjectChannelHarness

from .simulator import CUSTOMER, CUSTOMERS, OTHERS
from .suite import Suite


@pytest.fixture
async def harness():
    async with Suite().harness() as harness:
        yield harness


@pytest.mark.parametrize("customer", [CUSTOMERS[OTHERS], OTHERS])
async def test_invisible_customer_is_misconfigured(harness: ObjectChannelHarness, customer):
    harness.use(customer=customer)
    with pytest.raises(Misconfigured):
        await harness.attempt(harness.alert())
    [problem] = (await harness.channel.check()).problems
    assert f"customer {customer!r} does not exist" in problem
    harness.use(customer=CUSTOMER)
    await harness.bring(harness.alert())


async def test_customer_id_needs_no_list_permission(harness: ObjectChannelHarness):
    harness.use(customer=CUSTOMERS[CUSTOMER])
    harness.simulator.lacks = {"customers_read"}
    assert not (await harness.channel.check()).problems
    await harness.bring(harness.alert())
    assert len(harness.objects) == 1


async def test_check_reports_all_missing_names(harness: ObjectChannelHarness):
    harness.use(closed_status="Gone", tlp="mauve", customer="Nobody")
    problems = "\n".join((await harness.channel.check()).problems)
    assert "status 'Gone' does not exist" in problems
    assert "TLP 'mauve' does not exist" in problems
    assert "customer 'Nobody' does not exist" in problems

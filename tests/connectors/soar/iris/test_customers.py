"""Whom alerts are of, and what a check says of names that are not there."""

from __future__ import annotations

import pytest

from tocsin import Misconfigured
from tocsin.testing.conformance.channel_harness import ChannelHarness

from .simulator import CUSTOMER, CUSTOMERS, OTHERS
from .suite import Suite


@pytest.fixture
async def lab():
    async with Suite().harness() as lab:
        yield lab


@pytest.mark.parametrize("customer", [CUSTOMERS[OTHERS], OTHERS])
async def test_a_customer_that_cannot_be_seen_waits_for_the_operator(lab: ChannelHarness, customer):
    lab.use(customer=customer)
    with pytest.raises(Misconfigured):
        await lab.attempt(lab.alert())
    [problem] = (await lab.channel.check()).problems
    assert f"no customer {customer!r}" in problem
    lab.use(customer=CUSTOMER)
    await lab.bring(lab.alert())


async def test_a_customer_by_number_needs_no_right_to_list_them(lab: ChannelHarness):
    lab.use(customer=CUSTOMERS[CUSTOMER])
    lab.simulator.lacks = {"customers_read"}
    assert not (await lab.channel.check()).problems
    await lab.bring(lab.alert())
    assert len(lab.objects) == 1


async def test_check_names_all_that_is_not_there_by_its_name(lab: ChannelHarness):
    lab.use(closed_status="Gone", tlp="mauve", customer="Nobody")
    problems = "\n".join((await lab.channel.check()).problems)
    assert "no status 'Gone'" in problems
    assert "no TLP 'mauve'" in problems
    assert "no customer 'Nobody'" in problems

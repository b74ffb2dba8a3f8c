"""Detection of each channel rule by a channel that breaks only this rule."""

from __future__ import annotations

import pytest
from broken import broken_rules, rules_of
from broken_channels import TABLE, Chat, ChatConformance, Pager, PagerConformance, params

RULES = rules_of(PagerConformance)
IN_BOTH_SHAPES = {
    "test_a_busy_receiver_is_retried_after_its_delay",
    "test_a_failing_receiver_is_retried",
    "test_refused_credentials_raise",
}


@pytest.mark.parametrize(("rules", "kind"), params())
def test_a_broken_channel_breaks_its_rule_and_no_other(rules, kind):
    assert broken_rules(PagerConformance, kind, RULES, "channel") == rules


def test_a_good_channel_breaks_none():
    assert broken_rules(PagerConformance, Pager, RULES, "channel") == set()


def test_every_rule_has_a_channel_that_breaks_it():
    assert set(RULES) == {rule for rules, _ in TABLE for rule in rules}


def test_every_rule_says_what_it_is_and_why():
    words = {rule: getattr(PagerConformance, rule).__doc__ for rule in RULES}
    assert [rule for rule, text in words.items() if len((text or "").split("\n\n")) != 2] == []


@pytest.mark.full
def test_errors_in_the_receivers_own_shape_are_judged():
    refused = IN_BOTH_SHAPES | {"test_a_refused_event_is_not_retried"}
    assert broken_rules(ChatConformance, Chat, RULES, "channel") == set()
    assert broken_rules(ChatConformance, Pager, RULES, "channel") == refused

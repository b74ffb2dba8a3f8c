"""Detection of each enricher rule by an enricher that breaks only this rule."""

from __future__ import annotations

import inspect

import pytest
from broken import broken_rules, rules_of
from broken_enrichers import (
    TABLE,
    Envelope,
    EnvelopeConformance,
    Forgiving,
    Reputation,
    ReputationConformance,
    params,
)

from tocsin.testing.conformance.rules import RuleBroken

RULES = rules_of(ReputationConformance)
IN_BOTH_SHAPES = {
    "test_throttling_is_waited_out",
    "test_refused_credentials_raise",
    "test_an_error_response_raises",
    "test_check_raises_for_failures",
}


def broken_by(kind) -> set[str]:
    return broken_rules(ReputationConformance, kind, RULES, "enricher")


@pytest.mark.parametrize(("rules", "kind"), params())
def test_a_broken_enricher_breaks_its_rule_and_no_other(rules, kind):
    assert broken_by(kind) == rules


def test_a_good_enricher_breaks_none():
    assert broken_by(Reputation) == set()


def test_every_rule_has_an_enricher_that_breaks_it():
    assert set(RULES) == {rule for rules, _ in TABLE for rule in rules}


def test_every_rule_says_what_it_is_and_why():
    words = {rule: getattr(ReputationConformance, rule).__doc__ for rule in RULES}
    assert [rule for rule, text in words.items() if len((text or "").split("\n\n")) != 2] == []


@pytest.mark.full
def test_an_enricher_that_tells_errors_with_status_200_apart_breaks_none():
    assert broken_rules(EnvelopeConformance, Envelope, RULES, "enricher") == set()


def test_errors_in_the_sources_own_shape_are_judged():
    broken = IN_BOTH_SHAPES | {"test_an_error_with_status_200_raises"}
    rules = sorted(broken | {"test_unknown_entities_have_no_enrichment"})
    assert broken_rules(EnvelopeConformance, Forgiving, rules, "enricher") == broken


def test_a_bug_of_the_enricher_is_reported_with_its_line():
    class Careless(Reputation):
        async def check(self):
            return {}.get("account")["plan"]

    class Suite(ReputationConformance):
        enricher = Careless

    with pytest.raises(RuleBroken) as caught:
        Suite().test_check_raises_for_failures()
    line = inspect.getsourcelines(Careless.check)[1] + 1
    seen = f'test_enricher_rules.py", line {line}, in '
    assert seen in str(caught.value)
    assert str(caught.value).endswith("Careless.check), expected CredentialsRefused")


def test_one_that_asks_nobody_is_held_to_the_other_rules():
    class Offline(ReputationConformance):
        def routes(self):
            return ()

    with pytest.raises(pytest.skip.Exception, match="the enricher sends no requests"):
        Offline().test_throttling_is_waited_out()

"""Detection of each enricher rule by an enricher that breaks only this rule."""

from __future__ import annotations

import pytest
from broken import broken_rules, rules_of
from broken_enrichers import TABLE, Reputation, ReputationConformance, params

RULES = rules_of(ReputationConformance)


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


def test_one_that_asks_nobody_is_held_to_the_other_rules():
    class Offline(ReputationConformance):
        def routes(self):
            return ()

    with pytest.raises(pytest.skip.Exception, match="the enricher sends no requests"):
        Offline().test_throttling_is_waited_out()

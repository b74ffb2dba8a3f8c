"""Detection of each rule by a provider that breaks only this rule."""

from __future__ import annotations

import broken_events
import broken_failures  # noqa: F401 - each enters its providers
import broken_files
import broken_others  # noqa: F401
import broken_pagination
import broken_pushes
import broken_records  # noqa: F401
import pytest
from broken import EXAMPLE, Broken, broken_rules, rules_of

TABLES = (EXAMPLE, broken_files.FILES, broken_pushes.PUSHES, broken_pushes.NUMBERS)
SAMPLE = 2
"""Of the other rules, so many are tried in the ordinary tests."""


def broken_providers() -> list:
    return [param for table in TABLES for param in table.params()]


@pytest.mark.parametrize(("table", "rules", "kind"), broken_providers())
def test_a_broken_provider_breaks_its_rule(table, rules, kind):
    every = rules_of(table.suite)
    begin = len(kind.__name__) * SAMPLE % len(every)
    some = {*rules, *[*every, *every][begin : begin + SAMPLE]}
    assert broken_rules(table.suite, kind, sorted(some)) == rules


@pytest.mark.full
@pytest.mark.parametrize(("table", "rules", "kind"), broken_providers())
def test_a_broken_provider_breaks_no_other_rule(table, rules, kind):
    assert broken_rules(table.suite, kind, rules_of(table.suite)) == rules


@pytest.mark.parametrize("table", TABLES, ids=["http", "files", "pushes", "numbers"])
def test_a_good_provider_breaks_none(table):
    assert broken_rules(table.suite, table.suite.provider, rules_of(table.suite)) == set()


def test_a_good_provider_of_two_streams_breaks_none():
    assert (
        broken_rules(EXAMPLE.suite, broken_pagination.TwoStreams, rules_of(EXAMPLE.suite)) == set()
    )


@pytest.mark.parametrize("kind", [broken_events.KnowsAddresses, broken_events.KnowsUsers])
def test_no_provider_is_asked_for_events_of_other_kinds_than_its_own(kind):
    rules = [rule for rule in rules_of(EXAMPLE.suite) if "event" in rule or "entity" in rule]
    assert broken_rules(EXAMPLE.suite, kind, rules) == set()


def test_every_rule_has_a_provider_that_breaks_it():
    broken = {rule for table in TABLES for rules, _ in table.table for rule in rules}
    assert {rule for table in TABLES for rule in rules_of(table.suite)} == broken


@pytest.mark.parametrize("table", TABLES, ids=["http", "files", "pushes", "numbers"])
def test_every_rule_says_what_it_is_and_why(table: Broken):
    words = {rule: getattr(table.suite, rule).__doc__ for rule in rules_of(table.suite)}
    assert [rule for rule, text in words.items() if len((text or "").split("\n\n")) != 2] == []

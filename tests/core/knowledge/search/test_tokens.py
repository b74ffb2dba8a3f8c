"""Tokens: shortcuts find the same as a look at every part."""

from __future__ import annotations

from hypothesis import given
from hypothesis.strategies import lists, sampled_from

from tocsin.knowledge.search import tokens

PIECES = [
    *".:/\\@,;=()[]{}<>|'\" \n-_%",
    "a",
    "ß",
    "b1",
    "10",
    "1.2",
    "cve-",
    "::",
    "://",
    "z" * 170,
]
texts = lists(sampled_from(PIECES), max_size=9).map("".join).map(tokens.fold_text)


@given(texts)
def test_the_entities_in_a_text_do_not_depend_on_what_else_is_in_it(text):
    alone = tokens.entity_tokens(text)
    assert tokens.entity_tokens(f"{text} 192.0.2.1") == list(dict.fromkeys([*alone, "192.0.2.1"]))


@given(texts)
def test_every_entity_in_a_value_is_the_value_or_one_of_its_parts(value):
    value = value.strip()
    parts = {tokens.whole_token(value), *tokens.part_tokens(value)}
    assert parts.issuperset(tokens.entity_tokens(value))


@given(texts)
def test_words_are_as_long_as_tokens_at_most(text):
    assert all(len(word) <= tokens.MAX_TOKEN for word in tokens.split_words(text))

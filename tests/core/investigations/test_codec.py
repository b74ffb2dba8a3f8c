"""Round trips of questions and answers through the ledger."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tocsin.investigations.codec import (
    decode_answer,
    decode_question,
    encode_answer,
    encode_question,
    question_kind,
)
from tocsin.model import (
    QUESTIONS,
    Alert,
    Enrichment,
    Entity,
    EntityKind,
    SearchHistory,
    SiemEvent,
    Window,
)

words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
moments = st.datetimes(
    min_value=datetime(2000, 1, 1),  # noqa: DTZ001 - hypothesis adds the zone
    max_value=datetime(2100, 1, 1),  # noqa: DTZ001
    timezones=st.just(UTC),
)
numbers = st.floats(allow_nan=False, allow_infinity=False)
json = st.recursive(
    st.none() | st.booleans() | st.integers() | words | numbers,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=2),
    max_leaves=3,
)
entities = st.builds(Entity, st.sampled_from(EntityKind), words)
facts = st.dictionaries(words, json, max_size=3)
for kind, strategy in (
    (str, words),
    (float, numbers),
    (datetime, moments),
    (Entity, entities),
    (Window, st.builds(Window, moments, moments)),
):
    st.register_type_strategy(kind, strategy)
st.register_type_strategy(Alert, lambda _: st.builds(Alert, record=st.none() | facts))
st.register_type_strategy(Enrichment, lambda _: st.builds(Enrichment, facts=facts))
st.register_type_strategy(SiemEvent, lambda _: st.builds(SiemEvent, fields=facts))


def content(question) -> st.SearchStrategy:
    [base] = question.__orig_bases__
    return st.from_type(get_args(base)[0])


each = pytest.mark.parametrize("question", QUESTIONS, ids=question_kind)
often = pytest.mark.parametrize("examples", [5, pytest.param(100, marks=pytest.mark.full)])


@often
@each
def test_a_question_survives(question, examples):
    @settings(max_examples=examples)
    @given(st.from_type(question))
    def survives(asked):
        assert decode_question(question_kind(question), encode_question(asked)) == asked

    survives()


@often
@each
def test_an_answer_survives(question, examples):
    kind = question_kind(question)

    @settings(max_examples=examples)
    @given(content(question))
    def survives(answer):
        text = encode_answer(kind, answer)
        again = decode_answer(kind, text)
        assert again == answer
        assert encode_answer(kind, again) == text

    survives()


@given(st.text(st.sampled_from('\0\\u0"n')))
def test_only_nul_itself_is_replaced(text):
    found = decode_question("matching", encode_question(SearchHistory(text=text)))
    assert found.text == text.replace("\0", "\N{REPLACEMENT CHARACTER}")


def test_an_answer_of_other_things_is_refused():
    wrong = Enrichment(entity="192.0.2.1", summary=datetime.now(UTC) - timedelta(1))
    with pytest.raises(ValueError):
        encode_answer("enrichments-of", (wrong,))

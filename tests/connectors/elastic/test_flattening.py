"""Documents with nested members, dotted names, and both."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tocsin_connectors.siem.elastic.mapping import flatten_document

NAMES = st.text("ab", min_size=1, max_size=2)
VALUES = st.text(max_size=3) | st.integers() | st.booleans()
DOCUMENTS = st.recursive(
    VALUES, lambda inner: st.dictionaries(NAMES, inner, max_size=3), max_leaves=8
).filter(lambda item: isinstance(item, dict))


def test_nested_and_dotted_members_are_the_same():
    assert (
        flatten_document({"a": {"b": {"c": 1}}})
        == flatten_document({"a.b": {"c": 1}})
        == {"a.b.c": [1]}
    )


def test_what_stands_under_a_dotted_name_comes_first():
    source = {"kibana": {"alert": {"status": "old"}}, "kibana.alert.status": "new"}
    assert flatten_document(source) == {"kibana.alert.status": ["new", "old"]}


def test_lists_are_their_members_and_null_is_nothing():
    source = {"a": [{"b": [1, [2]]}, {"b": None}, {"c": "x"}], "d": None, "e": []}
    assert flatten_document(source) == {"a.b": [1, 2], "a.c": ["x"]}


def test_what_is_nested_without_end_ends():
    source: dict = {}
    source["a"] = source
    assert flatten_document(source) == {}


def dotted(document, place=""):
    for name, value in document.items():
        if isinstance(value, dict):
            yield from dotted(value, f"{place}{name}.")
        else:
            yield f"{place}{name}", value


@given(DOCUMENTS)
def test_a_document_is_the_same_however_it_is_written(document):
    assert flatten_document(dict(dotted(document))) == flatten_document(document)

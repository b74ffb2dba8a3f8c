"""Values at dotted paths of documents with nested members, dotted names, and both."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tocsin import values_at

NAMES = st.text("ab", min_size=1, max_size=2)
VALUES = st.text(max_size=3) | st.integers() | st.booleans()
DOCUMENTS = st.recursive(
    VALUES, lambda inner: st.dictionaries(NAMES, inner, max_size=3), max_leaves=8
).filter(lambda document: isinstance(document, dict))


def at(document, path, **options):
    return list(values_at(document, path, **options))


def test_nested_and_dotted_members_are_the_same():
    documents = ({"a": {"b": {"c": 1}}}, {"a.b": {"c": 1}}, {"a": {"b.c": 1}}, {"a.b.c": 1})
    assert [at(document, "a.b.c") for document in documents] == [[1]] * 4


def test_a_value_under_a_dotted_name_comes_first():
    source = {"kibana": {"alert": {"status": "old"}}, "kibana.alert.status": "new"}
    assert at(source, "kibana.alert.status") == ["new", "old"]
    assert at(source, "kibana.alert.status", enter_lists=False) == ["new", "old"]


def test_lists_are_their_members_and_null_is_nothing():
    source = {"a": [{"b": [1, [2]]}, {"b": None}, {"c": "x"}], "d": None, "e": []}
    assert [at(source, path) for path in ("a.b", "a.c", "d", "e")] == [[1, 2], ["x"], [], []]
    assert at([source, source], "a.c") == ["x", "x"]


def test_lists_are_values_where_they_are_not_entered():
    source = {"a": [{"b": 1}], "c": {"d": [2]}, "e": None}
    paths = ("a.b", "a", "c.d", "e")
    assert [at(source, path, enter_lists=False) for path in paths] == [[], [[{"b": 1}]], [[2]], []]
    assert at([source], "a", enter_lists=False) == []


def test_what_is_nested_without_end_ends():
    source: dict = {}
    source["a"] = source
    assert at(source, "a.a") == [source]
    endless: list = []
    endless.append(endless)
    assert at({"a": endless}, "a.a") == at({"a": endless}, "a") == []


def test_what_is_no_object_has_no_values():
    assert at("text", "a") == at(None, "a") == at({"a": "text"}, "a.b") == []


def dotted(document, place=""):
    for name, value in document.items():
        if isinstance(value, dict):
            yield from dotted(value, f"{place}{name}.")
        else:
            yield f"{place}{name}", value


@given(DOCUMENTS)
def test_a_document_is_the_same_however_it_is_written(document):
    flat = dict(dotted(document))
    assert {path: at(flat, path) for path in flat} == {path: at(document, path) for path in flat}
    assert {path: at(document, path) for path in flat} == {path: [flat[path]] for path in flat}

"""A form for settings, and what it comes to when it is sent as it was shown."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.hookspecs import Channel
from tocsin.registry.settings_schema import SettingShape
from tocsin.web.console.forms import Form
from tocsin.web.console.settings_form import (
    build_fields,
    find_errors,
    group_fields,
    read_settings,
)

words = st.text(
    st.characters(exclude_categories=["C", "Z"], exclude_characters=":"), min_size=1, max_size=20
)
numbers = st.integers(-(2**63), 2**63 - 1)
VALUES = {
    SettingShape.TEXT: words,
    SettingShape.NUMBER: numbers | st.floats(allow_nan=False, allow_infinity=False),
    SettingShape.FLAG: st.booleans(),
    SettingShape.CHOICE: words,
    SettingShape.CHOICES: st.lists(words, min_size=1),
    SettingShape.LIST: st.lists(words, min_size=1),
    SettingShape.TABLE: st.dictionaries(words, words, min_size=1),
    SettingShape.ANYTHING: numbers | words | st.lists(numbers | words, min_size=1) | st.booleans(),
}


def channel(shape: str, *, secret: bool = False) -> dict[str, Any]:
    setting = {"name": "it", "shape": shape, "secret": secret, "local": False}
    return {"settings": [setting]}


@given(
    st.sampled_from(list(SettingShape)).flatmap(
        lambda shape: st.tuples(st.just(shape), VALUES[shape])
    )
)
def test_what_is_shown_is_what_comes_back(shaped):
    shape, value = shaped
    [field] = build_fields(channel(shape), {"it": value})
    texts = ["", *field.chosen] if shape is SettingShape.CHOICES else [field.text]
    assert read_settings(Form({field.key: texts})) == {"it": value}
    name, text = field.was
    assert read_settings(Form({field.key: texts, name: [text]})) == {}
    assert read_settings(Form({field.key: [""], name: [text]})) == {"it": None}


@given(st.dictionaries(st.text(max_size=30), st.lists(st.text(), min_size=1), max_size=5))
def test_whatever_is_sent_is_read(fields):
    read_settings(Form(fields))


@pytest.mark.parametrize("shape", list(SettingShape))
def test_an_empty_field_is_null_and_an_empty_secret_stays(shape):
    [field] = build_fields(channel(shape), {})
    assert read_settings(Form({field.key: [""]})) == {"it": None}
    [field] = build_fields(channel(shape, secret=True), {}, ["it"])
    assert field.is_set
    assert read_settings(Form({field.key: [""]})) == {}
    assert read_settings(Form({field.key: [""], field.forget: ["yes"]})) == {"it": None}


@pytest.mark.parametrize(
    ("key", "text"),
    [("number.it", "many"), ("flag.it", "perhaps"), ("table.it", "no colon"), ("anything.it", "{")],
)
def test_what_cannot_be_read_is_left_for_the_plugin_to_judge(key, text):
    assert read_settings(Form({key: [text]})) == {"it": text}


def test_other_fields_are_no_settings():
    assert read_settings(Form({"name": ["x"], "form_token": ["y"], "nonsense.it": ["z"]})) == {}


def test_mistakes_belong_to_their_setting():
    wrong = [
        {"path": path, "detail": ""} for path in ("settings.it", "settings.it.0", "settings.its")
    ]
    assert find_errors(wrong, "it") == wrong[:2]


def test_settings_have_labels_as_people_write_them_and_are_grouped_by_use():
    def setting(name: str, *, common: bool) -> dict[str, Any]:
        shape = {"shape": SettingShape.TEXT, "secret": False, "local": False}
        return {"name": name, "common": common, **shape}

    names = ["url", "ca_file", "pause_after_failures", "events", "unheard_of"]
    settings = [setting(name, common=name != "url") for name in names]
    sections = group_fields(build_fields({"settings": settings}, {}))
    assert [(title, [field.label for field in fields]) for title, fields in sections] == [
        ("", ["URL"]),
        ("Events and filters", ["Events"]),
        ("Retries and limits", ["Pause after failures"]),
        ("Network", ["CA file"]),
        ("Other settings", ["Unheard of"]),
    ]


def test_every_common_setting_has_a_section():
    settings = [
        {"name": name, "common": True, "shape": SettingShape.TEXT, "secret": False, "local": False}
        for name in Channel.Settings.model_fields
        if name != "plugin"
    ]
    titles = [title for title, _ in group_fields(build_fields({"settings": settings}, {}))]
    assert titles == ["Events and filters", "Retries and limits", "Network"]

"""What is wrong is said where it is wrong, once, and with what would be right."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tocsin.validation import explain


class Colour(StrEnum):
    RED = "red"
    GREEN = "green"


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid")

    width: int = Field(description="How wide it is.")
    height: int = 1


class Outer(BaseModel):
    model_config = ConfigDict(extra="forbid")

    one: Inner = Field(default_factory=lambda: Inner(width=1))
    perhaps: Annotated[Inner | None, Field(description="One more.")] = None
    several: tuple[Inner, ...] = ()
    by_colour: Mapping[Colour, Inner] = {}
    anything: dict[str, Any] = {}


def mistakes(**content: Any) -> list[str]:
    with pytest.raises(ValidationError) as caught:
        Outer.model_validate(content)
    return [
        f"{'.'.join(it.path)}: {it.found}; {it.expected}" for it in explain(caught.value, Outer)
    ]


@pytest.mark.parametrize(
    ("content", "path"),
    [
        ({"one": {"width": 1, "heigth": 2}}, "one"),
        ({"perhaps": {"width": 1, "heigth": 2}}, "perhaps"),
        ({"several": [{"width": 1, "heigth": 2}]}, "several.0"),
        ({"by_colour": {"red": {"width": 1, "heigth": 2}}}, "by_colour.red"),
    ],
)
def test_a_key_that_is_unknown_further_down_is_answered_with_the_nearest(content, path):
    assert mistakes(**content) == [f"{path}.heigth: unknown key; remove it; did you mean 'height'?"]


def test_a_key_that_is_like_none_is_answered_with_all_that_are_known_there():
    assert mistakes(one={"width": 1, "x": 2}) == [
        "one.x: unknown key; remove it; known here: height, width"
    ]


def test_what_is_missing_further_down_is_said_with_its_purpose():
    assert mistakes(by_colour={"red": {}}) == [
        "by_colour.red.width: missing; it says: How wide it is."
    ]


def test_below_a_key_that_is_wrong_itself_nothing_more_is_said():
    assert mistakes(by_colour={"reed": {}, "green": {"width": "x"}}) == [
        "by_colour.reed: found 'reed'; give one of: 'red' or 'green'; did you mean 'red'?",
        "by_colour.green.width: found 'x'; give a whole number",
    ]


def test_a_table_where_something_else_belongs_is_called_names_and_values():
    assert mistakes(several={"a": 1}) == [
        'several: found names and values; give a list, such as ["one", "two"]'
    ]

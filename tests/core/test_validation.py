"""What is wrong is said where it is wrong, once, and with what would be right."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from tocsin.errors import ConfigurationProblem
from tocsin.fields import Duration
from tocsin.validation import explain_errors


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
        f"{'.'.join(error.path)}: {error.found}; {error.expected}"
        for error in explain_errors(caught.value, Outer)
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
        "one.x: unknown key; remove it; valid keys: height, width"
    ]


def test_what_is_missing_further_down_is_said_with_its_purpose():
    assert mistakes(by_colour={"red": {}}) == [
        "by_colour.red.width: missing; expected: How wide it is."
    ]


def test_below_a_key_that_is_wrong_itself_nothing_more_is_said():
    assert mistakes(by_colour={"reed": {}, "green": {"width": "x"}}) == [
        "by_colour.reed: found 'reed'; use one of: 'red' or 'green'; did you mean 'red'?",
        "by_colour.green.width: found 'x'; use a whole number",
    ]


class Pair(BaseModel):
    low: int
    high: int

    @model_validator(mode="after")
    def _in_order(self) -> Pair:
        if self.low > self.high:
            raise ValueError("use a low that is not above high")
        return self


def test_of_values_that_do_not_go_together_only_what_would_be_right_is_said():
    with pytest.raises(ValidationError) as caught:
        Pair.model_validate({"low": 2, "high": 1})
    [mistake] = explain_errors(caught.value, Pair)
    assert (mistake.path, mistake.words) == ((), "use a low that is not above high")
    assert str(ConfigurationProblem("a.toml", "pair", mistake.found, mistake.expected)) == (
        "a.toml: pair: use a low that is not above high"
    )


def test_a_table_where_something_else_belongs_is_called_names_and_values():
    assert mistakes(several={"a": 1}) == [
        'several: found names and values; use a list, such as ["one", "two"]'
    ]


class Written(BaseModel):
    plain: Annotated[str, Field(pattern="^[a-z]+$")] = "a"
    name: str = Field(default="a", pattern="^[a-z]+$", description="Small letters.")
    names: tuple[Annotated[str, Field(pattern="^[a-z]+$")], ...] = Field(
        default=("a",), min_length=1, description="Words of small letters."
    )
    window: timedelta = Field(default=timedelta(1), le=timedelta(days=1))
    pause: Annotated[Duration | None, Field(default=None, ge=timedelta(seconds=30))]
    keep: Annotated[Duration, Field(ge=timedelta(days=32))] | None = None
    shades: Mapping[str, Colour | Literal["none"]] = {}


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ({"name": "A B"}, "name: found 'A B'; expected: Small letters."),
        ({"plain": "A B"}, "plain: found 'A B'; use a value in the required format"),
        ({"names": ["main) OR"]}, "names.0: found 'main) OR'; expected: Words of small letters."),
        ({"plain": "a\n"}, r"plain: found 'a\n'; remove line breaks and other control characters"),
        ({"plain": "\0"}, r"plain: found '\x00'; remove the NUL character"),
        ({"names": []}, "names: found an empty list; add at least one item"),
        ({"pause": "5s"}, "pause: found '5s'; use at least 30s"),
        ({"keep": "10d"}, "keep: found '10d'; use at least 32d"),
        (
            {"shades": {"wall": "non"}},
            "shades.wall: found 'non'; use one of: 'red', 'green' or 'none'; did you mean 'none'?",
        ),
    ],
)
def test_what_an_operator_wrote_is_judged_in_words_and_once(written, expected):
    with pytest.raises(ValidationError) as caught:
        Written.model_validate(written)
    [mistake] = explain_errors(caught.value, Written, written)
    assert f"{'.'.join(mistake.path)}: {mistake.words}" == expected


def test_a_duration_is_shown_as_it_is_written():
    with pytest.raises(ValidationError) as caught:
        Written.model_validate({"window": timedelta(days=7)})
    [mistake] = explain_errors(caught.value, Written, {"window": "7d"})
    assert mistake.words == "found '7d'; use at most 1d"


def test_many_wrong_keys_take_time_by_their_number_alone():
    class Tables(BaseModel):
        headers: dict[Annotated[str, Field(pattern="^[a-z]+$")], int]

    wrong = {f"key {number}": "x" for number in range(6_000)}
    with pytest.raises(ValidationError) as caught:
        Tables.model_validate({"headers": wrong})
    began = time.thread_time()
    assert len(list(explain_errors(caught.value, Tables))) == len(wrong)
    assert time.thread_time() - began < 1

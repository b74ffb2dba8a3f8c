"""What the values of settings are made of."""

from __future__ import annotations

from typing import Annotated, Literal

import pytest
from pydantic import Field, SecretStr

from tocsin.fields import Duration, FileOnly, LocalPath, PluginSettings
from tocsin.model import EventType, Severity
from tocsin.registry.setting_shapes import Shape, shapes_of


class _Node(PluginSettings):
    within: _Node | None = None


class _Settings(PluginSettings):
    text: str
    secret: SecretStr | None = None
    length: Duration | None = None
    number: Annotated[int, Field(ge=1)] | None = None
    share: float = 0.5
    flag: bool = False
    severity: Severity = Severity.MEDIUM
    word: Literal["a", "b"] | None = None
    one: Literal[1, 2] = 1
    events: tuple[EventType, ...] = ()
    names: list[str] | None = None
    numbers: list[int] | None = None
    table: dict[str, str] | None = None
    secrets: dict[str, SecretStr] | None = None
    counts: dict[str, int] | None = None
    either: int | str = 0
    whatever: object = None
    node: _Node | None = None
    path: LocalPath | None = None
    proxy: Annotated[str, FileOnly] | None = None


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("text", Shape.TEXT),
        ("secret", Shape.TEXT),
        ("length", Shape.TEXT),
        ("number", Shape.NUMBER),
        ("share", Shape.NUMBER),
        ("flag", Shape.FLAG),
        ("severity", Shape.CHOICE),
        ("word", Shape.CHOICE),
        ("one", Shape.NUMBER),
        ("events", Shape.CHOICES),
        ("names", Shape.LIST),
        ("numbers", Shape.ANYTHING),
        ("table", Shape.TABLE),
        ("secrets", Shape.TABLE),
        ("counts", Shape.ANYTHING),
        ("either", Shape.ANYTHING),
        ("whatever", Shape.ANYTHING),
        ("node", Shape.ANYTHING),
    ],
)
def test_a_settings_shape_is_known(name, shape):
    assert shapes_of(_Settings)[name].shape is shape


def test_choices_are_named():
    shapes = shapes_of(_Settings)
    assert shapes["word"].choices == ("a", "b")
    assert set(shapes["events"].choices) == set(EventType)
    assert shapes["one"].choices == ()


def test_what_only_the_file_can_set_is_known():
    assert _Settings.local_fields() == {"path", "proxy"}

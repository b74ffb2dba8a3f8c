"""What the values of settings are made of."""

from __future__ import annotations

from typing import Annotated, Literal

import pytest
from pydantic import Field, SecretStr

from tocsin.fields import Duration, FileOnly, LocalPath, PluginSettings
from tocsin.model import EventType, Severity
from tocsin.registry.settings_schema import SettingShape, list_setting_shapes


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
        ("text", SettingShape.TEXT),
        ("secret", SettingShape.TEXT),
        ("length", SettingShape.TEXT),
        ("number", SettingShape.NUMBER),
        ("share", SettingShape.NUMBER),
        ("flag", SettingShape.FLAG),
        ("severity", SettingShape.CHOICE),
        ("word", SettingShape.CHOICE),
        ("one", SettingShape.NUMBER),
        ("events", SettingShape.CHOICES),
        ("names", SettingShape.LIST),
        ("numbers", SettingShape.ANYTHING),
        ("table", SettingShape.TABLE),
        ("secrets", SettingShape.TABLE),
        ("counts", SettingShape.ANYTHING),
        ("either", SettingShape.ANYTHING),
        ("whatever", SettingShape.ANYTHING),
        ("node", SettingShape.ANYTHING),
    ],
)
def test_a_settings_shape_is_known(name, shape):
    assert list_setting_shapes(_Settings)[name].shape is shape


def test_choices_are_named():
    shapes = list_setting_shapes(_Settings)
    assert shapes["word"].choices == ("a", "b")
    assert set(shapes["events"].choices) == set(EventType)
    assert shapes["one"].choices == ()


def test_what_only_the_file_can_set_is_known():
    assert _Settings.local_fields() == {"path", "proxy"}

"""Building blocks of plugin settings."""

from __future__ import annotations

import contextlib
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, SecretStr, TypeAdapter, ValidationError

from tocsin.durations import parse_iso_duration
from tocsin.fields import Duration, LocalPath, PluginSettings, SettingsOrigin

durations: TypeAdapter[timedelta] = TypeAdapter(Duration)


class Settings(PluginSettings):
    secret: SecretStr | None = None
    headers: dict[str, SecretStr] = Field(default_factory=dict)


@pytest.mark.parametrize(
    ("text", "duration"),
    [
        ("30s", timedelta(seconds=30)),
        ("250ms", timedelta(milliseconds=250)),
        ("5m", timedelta(minutes=5)),
        ("24h", timedelta(hours=24)),
        ("7d", timedelta(days=7)),
        ("2w", timedelta(weeks=2)),
        ("0s", timedelta(0)),
        ("PT15M", timedelta(minutes=15)),
        ("P1DT2H3M4S", timedelta(days=1, hours=2, minutes=3, seconds=4)),
    ],
)
def test_a_duration_is_read_as_it_is_written(text, duration):
    assert durations.validate_python(text) == duration


@pytest.mark.parametrize(
    "text", ["", "5", "5 m", "-5m", "1.5h", "5M", "\u0665m", "1h30m", "inf", "999999999w", "40000d"]
)
def test_what_is_no_duration_is_refused_with_what_would_be(text):
    with pytest.raises(ValidationError, match="use a "):
        durations.validate_python(text)


@pytest.mark.parametrize("value", [24, 2.5, True, ["5m"], {"hours": 1}])
def test_a_number_without_a_unit_is_no_duration(value):
    with pytest.raises(ValidationError, match="use a number with a unit in quotes"):
        durations.validate_python(value)


@given(st.integers(0, 9), st.integers(0, 99), st.integers(0, 99), st.integers(0, 99))
def test_an_iso_duration_is_the_sum_of_its_parts(days, hours, minutes, seconds):
    parts = [(hours, "H"), (minutes, "M"), (seconds, "S")]
    time = "".join(f"{number}{unit}" for number, unit in parts if number)
    text = "P" + (f"{days}D" if days else "") + (f"T{time}" if time else "")
    expected = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
    if expected:
        assert parse_iso_duration(text) == expected
    else:
        with pytest.raises(ValueError):
            parse_iso_duration(text)


@pytest.mark.parametrize(
    "text", ["P", "PT", "P1Y", "P1M", "PT0S", "-PT5M", "P1W2D", "pt5m", "P99999999D", "PT1.5S", "5"]
)
def test_what_is_no_bounded_iso_duration_is_refused(text):
    with pytest.raises(ValueError):
        parse_iso_duration(text)


@given(st.text(max_size=20))
def test_any_text_is_a_duration_or_a_clear_error(text):
    with contextlib.suppress(ValidationError):
        assert durations.validate_python(text) >= timedelta(0)


def test_a_secret_comes_from_the_environment_or_a_file(monkeypatch, tmp_path):
    monkeypatch.setenv("HUSH", "one")
    (tmp_path / "hush").write_text("two\n")
    read = Settings.model_validate
    assert read({"secret": {"env": "HUSH"}}).secret == SecretStr("one")
    context = SettingsOrigin(tmp_path).context()
    assert read({"secret": {"file": "hush"}}, context=context).secret == SecretStr("two")
    assert read({}).secret is None


@pytest.mark.parametrize(
    "secret", ["literal", 7, ["x"], {"env": "A", "file": "b"}, {}, {"env": 1}, {"path": "x"}]
)
def test_a_secret_in_any_other_form_is_refused_and_not_shown(secret):
    with pytest.raises(ValidationError) as caught:
        Settings.model_validate({"secret": secret})
    assert "literal" not in str(caught.value)


@pytest.mark.parametrize("text", ["", " \n"])
def test_an_empty_secret_is_refused_by_where_it_is_empty(monkeypatch, tmp_path, text):
    monkeypatch.setenv("HUSH", text)
    (tmp_path / "hush").write_text(text)
    for reference, words in (
        ({"env": "HUSH"}, "the environment variable HUSH is empty: set it"),
        ({"file": "hush"}, "hush is empty: write the secret to it"),
    ):
        with pytest.raises(ValidationError, match=words):
            Settings.model_validate(
                {"secret": reference}, context=SettingsOrigin(tmp_path).context()
            )


def test_a_table_takes_plain_text_but_no_secret_by_its_name(monkeypatch):
    monkeypatch.setenv("HUSH", "Bearer x")
    headers = {"X-Tenant": "soc", "Authorization": {"env": "HUSH"}}
    settings = Settings.model_validate({"headers": headers})
    assert settings.headers["Authorization"] == SecretStr("Bearer x")
    for name in ("Authorization", "Cookie", "X-Api-Key", "X-Auth-Token"):
        with pytest.raises(ValidationError, match="NAME"):
            Settings.model_validate({"headers": {name: "literal"}})


@pytest.mark.parametrize(
    ("path", "expected"), [("eve.json", "/etc/tocsin/eve.json"), ("/var/*.json", "/var/*.json")]
)
def test_a_relative_path_is_relative_to_the_file(path, expected):
    class Files(PluginSettings):
        path: LocalPath

    context = SettingsOrigin(Path("/etc/tocsin")).context()
    assert Files.model_validate({"path": path}, context=context).path == expected


def test_settings_do_not_show_their_secrets(monkeypatch):
    monkeypatch.setenv("HUSH", "hunter2")
    settings = Settings.model_validate(
        {"secret": {"env": "HUSH"}, "headers": {"Authorization": {"env": "HUSH"}}}
    )
    assert "hunter2" not in f"{settings!r} {settings} {settings.model_dump_json()}"

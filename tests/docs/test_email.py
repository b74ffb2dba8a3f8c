"""Email page: all settings, and correct examples."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from tocsin import Channel
from tocsin.fields import SettingsOrigin
from tocsin_plugins.email import Email
from tocsin_plugins.email.channel import MOST_TOGETHER
from tocsin_plugins.email.composer import BEGIN, END, MAX_DIGEST_SIZE
from tocsin_plugins.email.fields import PORTS
from tocsin_plugins.email.outcomes import parse_accepted

PAGE = (Path(__file__).parents[2] / "docs/operators/email.md").read_text(encoding="utf-8")


def table(head: str) -> list[tuple[str, ...]]:
    rows = PAGE.partition(f"| {head} |")[2].partition("\n\n")[0].splitlines()[2:]
    return [tuple(cell.strip() for cell in row.strip("|").split("|")) for row in rows]


def test_every_setting_is_told_once_and_no_other():
    told = [name.strip("`") for name, *_ in table("Setting")]
    own = Email.Settings.model_fields.keys() - Channel.Settings.model_fields.keys()
    assert sorted(told) == sorted(own)
    assert "proxy" not in Email.Settings.model_fields


def test_defaults_are_those_of_the_code():
    fields = Email.Settings.model_fields
    for name, default, _ in table("Setting"):
        field = fields[name.strip("`")]
        assert field.is_required() == (default == "required"), name
        if default.startswith("`"):
            assert field.default == default.strip("`")


def test_the_ports_are_those_of_the_code():
    assert {name.strip("`"): int(port) for name, port, _ in table("`tls`")} == dict(PORTS)


def test_the_file_of_the_page_is_valid(monkeypatch):
    monkeypatch.setenv("MAIL_PASSWORD", "secret words")
    [text] = re.findall(r"^```toml\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    given = tomllib.loads(text)["destinations"]["mail"]
    Email.Settings.model_validate(given, context=SettingsOrigin(Path()).context())


def test_what_is_shown_of_an_answer_is_how_it_is_kept():
    samples = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert list(parse_accepted(dict(samples)[""].encode())) == ["soc@example.com"]


def test_numbers_and_marks_are_those_of_the_code():
    assert f"(default: {MOST_TOGETHER})" in PAGE
    assert f"{MAX_DIGEST_SIZE // 1024} KB of text and HTML" in PAGE
    assert f"`{BEGIN}` and `{END}`" in PAGE

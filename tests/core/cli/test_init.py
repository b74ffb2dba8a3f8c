"""`tocsin init`: the first files of an installation."""

from __future__ import annotations

import stat
import tomllib

import pytest


def test_the_first_files_are_private_valid_and_never_replaced(tocsin, tmp_path):
    status, output, errors = tocsin("init")
    assert status == 0, errors
    file = tmp_path / "plugins.toml"
    assert tomllib.loads(file.read_text()) == {"enabled": []}
    assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700
    assert "only you can read it" in output
    steps = [line.split("#")[0].strip() for line in output.splitlines()[-3:]]
    assert steps == ["tocsin check", "tocsin serve", "tocsin admin sign-in-link"]

    file.write_text("# mine")
    status, _, errors = tocsin("init")
    assert status == 2
    assert "plugins.toml already exists and was not changed" in errors
    assert file.read_text() == "# mine"


@pytest.mark.full
def test_the_settings_inside_comments_are_valid(tocsin, tmp_path):
    assert tocsin("init")[0] == 0
    path = tmp_path / "plugins.toml"
    _, sections = path.read_text().split("enabled = []\n")
    lines = [line.removeprefix("# ") for line in sections.splitlines() if line.startswith("# ")]
    settings = [line for line in lines if "=" in line or line.startswith("[")]
    (tmp_path / "webhook.secret").write_text("whsec_" + "QUJDREVG" * 5)
    text = "\n".join(['enabled = ["suricata", "webhook"]', *settings])
    path.write_text(text.replace("/var/log/suricata", str(tmp_path)))
    (tmp_path / "eve.json").touch()
    _, output, errors = tocsin("check")
    assert "plugins.toml" not in errors
    assert "edge-sensor" in output


@pytest.mark.full
def test_the_next_commands_name_other_locations_and_open_folders_are_reported(tocsin, tmp_path):
    (tmp_path / "open").mkdir(mode=0o755)
    variables = {"TOCSIN_DATA_DIR": "open", "TOCSIN_PLUGINS_FILE": "my plugins.toml"}
    status, output, errors = tocsin("init", **variables)
    assert status == 0, errors
    assert "chmod 700 open" in output
    variables = "TOCSIN_PLUGINS_FILE='my plugins.toml' TOCSIN_DATA_DIR=open"
    assert f"{variables} tocsin serve" in output
    status, _, errors = tocsin("init", TOCSIN_PLUGINS_FILE="missing/plugins.toml")
    assert status == 2
    assert "cannot write missing/plugins.toml: No such file" in errors

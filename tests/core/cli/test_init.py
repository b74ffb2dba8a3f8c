"""`tocsin init`: the first files of an installation."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest


def tocsin(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("TOCSIN_")}
    return subprocess.run(
        [sys.executable, "-m", "tocsin", *arguments],
        cwd=folder,
        env=own | variables,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_first_files_are_private_valid_and_never_replaced(tmp_path):
    done = tocsin(tmp_path, "init")
    assert done.returncode == 0, done.stderr
    file = tmp_path / "plugins.toml"
    assert tomllib.loads(file.read_text()) == {"enabled": []}
    assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700
    assert "only you can read it" in done.stdout
    steps = [line.split("#")[0].strip() for line in done.stdout.splitlines()[-3:]]
    assert steps == ["tocsin check", "tocsin serve", "tocsin admin sign-in-link"]

    file.write_text("# mine")
    again = tocsin(tmp_path, "init")
    assert again.returncode == 2
    assert "plugins.toml exists and was not changed" in again.stderr
    assert file.read_text() == "# mine"


@pytest.mark.full
def test_the_settings_inside_comments_are_valid(tmp_path):
    assert tocsin(tmp_path, "init").returncode == 0
    path = tmp_path / "plugins.toml"
    _, sections = path.read_text().split("enabled = []\n")
    lines = [line.removeprefix("# ") for line in sections.splitlines() if line.startswith("# ")]
    settings = [line for line in lines if "=" in line or line.startswith("[")]
    (tmp_path / "webhook.secret").write_text("whsec_" + "QUJDREVG" * 5)
    text = "\n".join(['enabled = ["suricata", "webhook"]', *settings])
    path.write_text(text.replace("/var/log/suricata", str(tmp_path)))
    (tmp_path / "eve.json").touch()
    checked = tocsin(tmp_path, "check")
    assert "plugins.toml" not in checked.stderr, checked.stderr
    assert "edge-sensor" in checked.stdout


@pytest.mark.full
def test_the_next_commands_name_other_locations_and_open_folders_are_reported(tmp_path):
    (tmp_path / "open").mkdir(mode=0o755)
    done = tocsin(tmp_path, "init", TOCSIN_DATA_DIR="open", TOCSIN_PLUGINS_FILE="my plugins.toml")
    assert done.returncode == 0, done.stderr
    assert "chmod 700 open" in done.stdout
    variables = "TOCSIN_PLUGINS_FILE='my plugins.toml' TOCSIN_DATA_DIR=open"
    assert f"{variables} tocsin serve" in done.stdout
    missing = tocsin(tmp_path, "init", TOCSIN_PLUGINS_FILE="missing/plugins.toml")
    assert missing.returncode == 2
    assert "cannot write missing/plugins.toml: No such file" in missing.stderr

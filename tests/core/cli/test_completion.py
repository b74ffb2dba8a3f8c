"""Completion in shells."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

import commands


@pytest.fixture(scope="module")
def script(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("completion")
    status, out, errors = commands.run(["completion", "bash"], folder, {})
    assert (status, errors) == (0, "")
    (folder / "tocsin.bash").write_text(out)
    return folder / "tocsin.bash"


@pytest.mark.parametrize(
    ("line", "found", "other"),
    [
        ("inc", "incidents", "init"),
        ("", "schedules", "create"),
        ("sync back", "backfills", "--json"),
        ("schedules --url http://x create --qu", "--query", "--cron"),
        ("deliveries list --st", "--state", "--since"),
    ],
)
def test_bash_completes_commands_and_options(script, line, found, other):
    *words, last = f"tocsin {line}".split(" ")
    given = " ".join(map(shlex.quote, [*words, last]))
    program = (
        f". {script}; COMP_WORDS=({given}); COMP_CWORD={len(words)}; _tocsin; "
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    ended = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=True)
    assert found in ended.stdout.split()
    assert other not in ended.stdout.split()


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_have_a_script_of_every_command(tocsin, shell):
    status, out, errors = tocsin("completion", shell)
    assert (status, errors) == (0, "")
    assert {"backfill", "--timespan", "new-signing-key"} <= set(
        out.replace("(", " ").replace(")", " ").replace("-l ", "--").split()
    )

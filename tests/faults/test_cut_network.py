"""A node whose network is cut: keepalives end the sessions of both sides."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CHILD = Path(__file__).parent / "cut_network_child.py"


@pytest.fixture
def network() -> tuple[str, ...]:
    """The command that runs another in a network of its own, in which it may make links."""
    for tool in ("unshare", "nsenter", "ip"):
        if shutil.which(tool) is None:
            pytest.skip(f"this machine has no {tool}")
    if os.geteuid() != 0:
        pytest.skip("only root can run PostgreSQL in a network of its own")
    command = ("unshare", "--net")
    bridge = ("ip", "link", "add", "near", "type", "bridge")
    made = subprocess.run([*command, *bridge], capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"networks cannot be made here: {made.stderr.strip()}")
    return command


@pytest.mark.timeout(300)
@pytest.mark.full  # waits for keepalives, half a minute and more
def test_both_sides_of_a_network_that_is_cut_go_on(network, tmp_path, record_property):
    """Linux itself would wait for a quarter of an hour, or for two hours on an idle connection."""
    child = subprocess.run(
        [*network, sys.executable, str(CHILD), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert child.returncode == 0, child.stderr
    found = json.loads(child.stdout.splitlines()[-1])
    for name, value in found.items():
        record_property(name, value)
    assert found["other"] < 45  # the other node has all work of the one that was cut
    assert found["idle_before"] > 0
    assert found["idle"] < 60  # the server has ended the sessions that nobody closed
    assert found["sent"] < 60  # the side that was cut ends a request,
    assert found["awaited"] < 60  # and the wait for an answer
    assert found["statuses"] == [0, 0]

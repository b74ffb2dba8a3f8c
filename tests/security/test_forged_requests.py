"""Server-side request forgery in a network of its own: whatever is sent is seen to arrive."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CHILD = Path(__file__).parent / "network_child.py"


@pytest.fixture
def namespace() -> list[str]:
    """The command that runs another in a network namespace of its own."""
    for tool in ("unshare", "ip"):
        if shutil.which(tool) is None:
            pytest.skip(f"this machine has no {tool}")
    command = ["unshare", "--map-root-user", "--net"]
    made = subprocess.run(
        [*command, "ip", "link", "set", "lo", "up"], capture_output=True, text=True, check=False
    )
    if made.returncode:
        pytest.skip(f"network namespaces cannot be made here: {made.stderr.strip()}")
    return command


# a process of its own, with a network; ordinary runs try the same list in `test_bypasses.py`
@pytest.mark.full
def test_no_request_to_a_forbidden_address_leaves_the_process(namespace, record_property):
    child = subprocess.run(
        [*namespace, sys.executable, str(CHILD)], capture_output=True, text=True, check=False
    )
    assert child.returncode == 0, child.stderr
    found = json.loads(child.stdout.splitlines()[-1])
    record_property("cases", found["urls"])
    assert (found["allowed"], found["control"]) == (200, 1)
    assert found["refused"] == found["urls"] > 100
    assert found["arrived"] == []

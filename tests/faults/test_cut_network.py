"""A node whose network is cut: keepalives end the sessions of both sides."""

from __future__ import annotations

from pathlib import Path

import pytest

from network_links import run_in_network

CHILD = Path(__file__).parent / "cut_network_child.py"


@pytest.mark.timeout(300)
@pytest.mark.full  # waits for keepalives, half a minute and more
def test_both_sides_of_a_network_that_is_cut_go_on(tmp_path, record_property):
    """Linux itself would wait for a quarter of an hour, or for two hours on an idle connection."""
    found = run_in_network(CHILD, tmp_path)
    for name, value in found.items():
        record_property(name, value)
    assert found["other"] < 45  # the other node has all work of the one that was cut
    assert found["idle_before"] > 0
    assert found["idle"] < 60  # the server has ended the sessions that nobody closed
    assert found["sent"] < 60  # the side that was cut ends a request,
    assert found["awaited"] < 60  # and the wait for an answer
    assert found["statuses"] == [0, 0]

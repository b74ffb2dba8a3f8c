"""NATS servers in networks of their own, which are split while senders push."""

from __future__ import annotations

from pathlib import Path

import pytest

from intake_service import SENDERS
from nats_servers import needs_servers
from network_links import run_in_network

pytest.importorskip("nats", reason="needs the package nats-py of the development requirements")

CHILD = Path(__file__).parent / "split_network_child.py"


@needs_servers
@pytest.mark.timeout(300)
@pytest.mark.full  # two splits of 25 seconds; what runs instead are servers that are away
def test_split_networks_lose_nothing(tmp_path, record_property):
    """A leader that only the node can reach has no majority, so it must accept nothing."""
    found = run_in_network(CHILD, tmp_path, timeout=280)
    for name, value in found.items():
        record_property(name, value)
    alone, minority = found["leader_away"], found["majority_away"]
    assert alone["accepted"] > 0  # by the others, once they have a leader
    assert minority["accepted"] == 0
    assert minority["stored"] > 0
    for split in (alone, minority):
        assert (split["other"], split["ready"]) == (0, 200)
    assert found["missing"] == []
    assert found["unaccounted"] == []
    # A push that was stored at once can be in the stream as well, and is then stored again
    assert 0 <= found["repeats"] <= 4 * SENDERS
    assert found["delivered"] == found["incidents"]
    assert found["delivered_again"] == 0

"""Network flows of alerts, from records in which any field may have any type."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin import NetworkFlow
from tocsin_connectors.siem.records import ECS_FLOW, FlowPaths, find_flow

PATHS = FlowPaths(("src",), ("sport",), ("dst",), ("dport",), ("proto",), ("dir",))
anything = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.text())


@pytest.mark.parametrize(
    ("record", "flow"),
    [
        ({"src": "2001:DB8::1", "dport": "443"}, {"source": "2001:db8::1", "target_port": 443}),
        ({"src": "192.0.2.1", "dst": "192.0.2.2"}, {"source": "192.0.2.1", "target": "192.0.2.2"}),
        ({"src": "192.0.2.1", "dst": "web-1"}, None),
        ({"src": "192.0.2.1", "sport": 65_536}, None),
        ({"sport": 0, "proto": "TCP"}, {"source_port": 0, "protocol": "tcp"}),
        ({}, None),
    ],
)
def test_a_flow_has_what_the_record_has(record, flow):
    assert find_flow(record, PATHS) == (flow and NetworkFlow(**flow))


def test_nested_and_dotted_fields_are_found():
    record = {"source": {"ip": "192.0.2.1", "port": 50_000}, "destination.port": 22}
    found = find_flow(record, ECS_FLOW)
    assert found == NetworkFlow(source="192.0.2.1", source_port=50_000, target_port=22)


@given(st.dictionaries(st.sampled_from(["src", "sport", "dst", "dport", "proto", "dir"]), anything))
def test_any_record_has_a_flow_or_none(record):
    found = find_flow(record, PATHS)
    if found is not None:
        ports = (found.source_port, found.target_port)
        assert all(port is None or 0 <= port < 65_536 for port in ports)

"""The ids of techniques."""

from __future__ import annotations

from tocsin_connectors.siem.entities import filter_techniques, find_techniques_in_text


def test_only_ids_are_techniques():
    given = ["T1110", "T1110.001", "TA0006", "CST0001", "t1110", "T1110.1", "see T1110", ""]
    assert list(filter_techniques(given)) == ["T1110", "T1110.001"]


def test_ids_are_found_within_a_text():
    assert find_techniques_in_text("T1110.001, TA0006 and T1021") == ["T1110.001", "T1021"]

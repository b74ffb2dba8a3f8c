"""Pagination of lists, for any page size and content."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin_connectors.siem.qradar.client import OffenseCursor, RecordRange

ASKED = 5


def walked(records, sizes, *, counts_parts=False):
    """Return what comes of walking through records, which are cut into pages of some sizes."""
    step, found = OffenseCursor(), []
    for place in range(10 * len(records) + 10):
        behind = [
            record
            for record in records
            if not isinstance(record["id"], int) or record["id"] > step.after
        ]
        page = behind[step.skipped : step.skipped + sizes[place % len(sizes)]]
        found += page
        total = len(page) if counts_parts else len(behind)
        step = step.following(RecordRange(page, total, None), ASKED)
        if step is None:
            return found
        step = OffenseCursor.decode(step.encode())
    raise AssertionError("it never ends")


sizes = st.lists(st.integers(1, ASKED), min_size=1, max_size=4)


@given(st.sets(st.integers(1, 500), max_size=40).map(sorted), sizes)
def test_every_offense_is_listed_once(ids, sizes):
    records = [{"id": id_} for id_ in ids]
    assert walked(records, sizes) == records


@given(st.lists(st.booleans(), max_size=30), sizes)
def test_offenses_without_id_do_not_stop_reading(readable, sizes):
    records = [{"id": place + 1 if value else "?"} for place, value in enumerate(readable)]
    found = walked(records, sizes)
    assert [item for item in found if item["id"] != "?"] == [
        record for record in records if record["id"] != "?"
    ]


@given(st.sets(st.integers(1, 500), max_size=40).map(sorted))
def test_reversed_order_is_read(ids):
    records = [{"id": id_} for id_ in reversed(ids)]
    assert {record["id"] for record in walked(records, [ASKED])} == set(ids)


@pytest.mark.parametrize("counts_parts", [False, True])
def test_total_of_a_page_is_not_total_of_the_list(counts_parts):
    records = [{"id": number} for number in range(1, 18)]
    assert walked(records, [ASKED], counts_parts=counts_parts) == records

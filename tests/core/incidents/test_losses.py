"""What of the time that was lost has not been read since."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tocsin.incidents.coverage.losses import iter_overlaps, merge_spans, subtract_spans

spans = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 40)).map(lambda ends: tuple(sorted(ends)))
)


def points(stretches) -> set[int]:
    return {point for start, end in stretches for point in range(start, end)}


@given(spans)
def test_what_is_merged_is_the_same_in_the_fewest_stretches(stretches):
    merged = merge_spans(stretches)
    assert points(merged) == points(stretches)
    assert all(one[1] < other[0] for one, other in pairwise(merged))
    assert all(start < end for start, end in merged)


@given(spans, spans)
def test_what_is_left_is_what_lies_in_no_other(stretches, others):
    left = subtract_spans(stretches, others)
    assert points(left) == points(stretches) - points(others)
    assert left == merge_spans(left)


@given(spans, spans)
def test_a_stretch_is_told_what_overlaps_it(stretches, others):
    found = iter_overlaps(
        ((*stretch, stretch) for stretch in stretches), ((*other, other) for other in others)
    )
    for (start, end), near in found:
        assert sorted(near) == sorted(
            other for other in others if other[0] < end and other[1] > start
        )

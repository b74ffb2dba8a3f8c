"""What lies between the intervals that were read."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count, pairwise

from hypothesis import given
from hypothesis import strategies as st

from tocsin.accounting.gaps import find_gaps
from tocsin.accounting.intervals import Interval
from tocsin.incidents import BYTES

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
points = st.integers(0, 60)


def intervals(*spans: tuple, unit: str = BYTES) -> list[Interval]:
    """Stretches that were read one after the other: start, end and, unless it is `eve`, a source.

    A fourth member says for how many minutes the stretch grew.
    """
    made = []
    for number, (start, end, *rest) in enumerate(spans):
        source, minutes = (*rest, *("eve", 0)[len(rest) :])
        began = NOON + timedelta(minutes=number)
        ended = began + timedelta(minutes=minutes)
        made.append(Interval(number, source, unit, start, end, began, ended))
    return made


def holes(read: list[Interval], first: int = 0) -> list[tuple[int, int]]:
    """The holes before the intervals from the `first` on."""
    judged = range(first, len(read))
    return [(hole.start, hole.before.start) for hole in find_gaps(read, judged)]


def cuts(most: int = 60) -> st.SearchStrategy[list[tuple[int, int]]]:
    """Stretches that follow each other without a gap, from 0 on."""
    inner = st.lists(st.integers(1, most), min_size=1, max_size=12, unique=True)
    return inner.map(lambda ends: list(pairwise([0, *sorted(ends)])))


def cells(spans) -> set[int]:
    return {cell for start, end in spans for cell in range(start, end)}


# Feeds


@given(st.lists(st.tuples(points, points).filter(lambda span: span[0] < span[1]), min_size=1))
def test_what_was_read_of_a_feed_and_its_holes_make_up_the_whole(spans):
    spans = [(-1, 0), *spans]
    found = holes(intervals(*spans, unit="time"))
    whole = range(-1, max(end for _, end in spans))
    assert cells(found) | cells(spans) == set(whole)
    assert not cells(found) & cells(spans)
    assert sum(end - start for start, end in found) == len(cells(found))


@given(cuts(), st.randoms(use_true_random=False))
def test_a_feed_may_be_read_in_any_order(spans, random):
    random.shuffle(spans)
    assert holes(intervals(*spans, unit="time")) == []


def test_a_feeds_hole_is_gone_once_it_was_read_later():
    read = [(0, 10), (20, 30)]
    assert holes(intervals(*read, unit="time")) == [(10, 20)]
    assert holes(intervals(*read, (10, 15), (15, 20), unit="time")) == []
    assert holes(intervals(*read, (12, 15), unit="time")) == [(10, 12), (15, 20)]


def test_what_lies_after_an_earlier_time_that_was_read_later_is_no_hole():
    assert holes(intervals((50, 60), (0, 10), (60, 70), unit="time")) == []
    assert holes(intervals((50, 60), (0, 10), (20, 30), unit="time")) == [(10, 20)]


def test_feeds_of_one_stream_do_not_fill_each_others_holes():
    read = intervals((0, 10, "a"), (10, 20, "b"), (20, 30, "a"), unit="time")
    assert holes(read) == [(10, 20)]


def test_only_holes_before_reported_intervals_are_listed():
    read = intervals((0, 10), (20, 30), (40, 50), unit="time")
    assert holes(read, first=2) == [(30, 40)]


# Files


@given(st.lists(cuts(), min_size=1, max_size=4))
def test_files_that_are_read_from_their_beginning_have_no_holes(generations):
    spans = [span for generation in generations for span in generation]
    assert holes(intervals(*spans)) == []


@given(cuts(), st.data())
def test_whatever_is_left_out_of_a_file_is_a_hole(spans, data):
    last = len(spans) - 1
    left_out = data.draw(st.sets(st.integers(0, last - 1)) if last else st.just(set()))
    kept = [span for place, span in enumerate(spans) if place not in left_out]
    assert cells(holes(intervals(*kept))) == cells(spans[place] for place in left_out)


@given(cuts(), cuts(), st.integers(1, 50))
def test_a_rotated_file_is_read_on_under_its_new_name(before, after, rest):
    end = before[-1][1]
    read = intervals(*before, (end, end + rest, "eve.1"), *after)
    assert holes(read) == []


def test_a_second_rotation_gives_the_same_name_to_another_content():
    first = [(0, 200), (200, 230, "eve.1"), (0, 500), (500, 530, "eve.1"), (0, 10)]
    assert holes(intervals(*first)) == []


def test_a_name_that_goes_on_where_nothing_ended_has_a_hole():
    read = intervals((0, 200), (200, 230, "eve.1"), (0, 500), (520, 530, "eve.1"))
    assert holes(read) == [(230, 520)]


def test_a_file_of_which_only_the_end_was_read_has_a_hole_from_its_beginning():
    assert holes(intervals((100, 200))) == [(0, 100)]


def test_what_is_known_from_before_explains_where_a_file_goes_on():
    assert holes(intervals((50, 100), (100, 200)), first=1) == []
    assert holes(intervals((50, 100), (120, 200)), first=1) == [(100, 120)]


def test_a_new_content_does_not_fill_the_hole_of_the_one_before():
    assert holes(intervals((0, 100), (150, 200), (0, 300))) == [(100, 150)]


def test_a_hole_that_was_read_after_all_is_none():
    assert holes(intervals((0, 100), (150, 200), (100, 150))) == []


def test_an_end_that_a_growing_row_has_swallowed_still_explains_a_copy():
    grew = (0, 300, "eve", 10)
    assert holes(intervals(grew, (200, 250, "copy"))) == []
    assert holes(intervals((0, 300, "eve", 0), (200, 250, "copy"))) == [(0, 200)]


def test_ids_need_not_be_close_to_each_other():
    numbers = count(7, 1_000)
    read = [
        Interval(next(numbers), "eve", BYTES, start, end, NOON, NOON)
        for start, end in ((0, 5), (5, 9), (12, 20))
    ]
    [hole] = find_gaps(reversed(read), {stretch.id for stretch in read})
    assert (hole.start, hole.before) == (9, read[2])


# The past


def test_backfills_that_lie_apart_make_no_hole():
    live, *past = intervals((100, 110), (10, 11), (20, 21), unit="time")
    assert holes([live, *(replace(stretch, past=True) for stretch in past)]) == []


def test_a_backfill_fills_a_hole():
    first, second, past = intervals((0, 10), (20, 30), (10, 20), unit="time")
    assert holes([first, second]) == [(10, 20)]
    assert holes([first, second, replace(past, past=True)]) == []

"""Drawings of the entity graph and the timeline."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from report_samples import BEGIN, brute_force, empty, huge
from tocsin.model import (
    Disposition,
    Entity,
    EntityAssessment,
    EntityKind,
    Relation,
    RelationType,
    Severity,
    Statement,
    TimelineEntry,
)
from tocsin.reports.graph import NODES, draw_graph
from tocsin.reports.timeline import WIDTH, draw_timeline

HOUR = timedelta(hours=1)


def moment(at, severity=None, source="incidents"):
    return TimelineEntry(
        at=at, statement=Statement("It was.", ("step:1",)), severity=severity, source=source
    )


def assessed(name, depth=0, disposition=Disposition.UNKNOWN):
    entity = Entity(EntityKind.HOST, name)
    return EntityAssessment(entity=entity, disposition=disposition, depth=depth)


def test_without_moments_there_is_no_timeline():
    assert draw_timeline(()) is None


def test_without_entities_there_is_no_graph():
    assert draw_graph(empty()) is None


def test_later_moments_stand_further_right():
    drawing = draw_timeline([moment(BEGIN + HOUR * n) for n in (2, 0, 1)])
    first, second, third = drawing.dots
    assert first.x < second.x < third.x
    assert second.x - first.x == pytest.approx(third.x - second.x, abs=12)


def test_each_source_has_a_lane_and_the_last_is_shared():
    drawing = draw_timeline([moment(BEGIN, source=f"provider:{n}") for n in range(9)])
    assert [lane.text for lane in drawing.lanes] == [
        *(f"provider:{n}" for n in range(5)),
        "others",
    ]
    assert sorted({dot.y for dot in drawing.dots}) == [lane.y for lane in drawing.lanes]


def test_moments_too_close_to_be_told_apart_share_a_dot_of_the_worst():
    times = [BEGIN, BEGIN + timedelta(milliseconds=1), BEGIN + HOUR]
    severities = [Severity.LOW, Severity.CRITICAL, None]
    drawing = draw_timeline(list(map(moment, times, severities)))
    shared, alone = drawing.dots
    assert (shared.severity, alone.severity) == ("Critical", "")
    assert shared.radius > alone.radius
    assert "And 1 more until 2026-11-21 05:33:01 UTC." in shared.label


def test_a_long_time_in_which_nothing_happened_is_cut_out():
    times = [BEGIN - timedelta(days=30), *(BEGIN + HOUR * n for n in range(4))]
    drawing = draw_timeline(list(map(moment, times)))
    assert [gap.text for gap in drawing.gaps] == ["30 days"]
    (_, end_of_first), (start_of_second, end) = drawing.segments
    assert end_of_first < start_of_second < end
    assert [tick.day for tick in drawing.ticks if tick.day] == ["2026-10-22", "2026-11-21"]


def test_ticks_stand_at_round_times():
    drawing = draw_timeline([moment(BEGIN), moment(BEGIN + HOUR * 6)])
    assert [tick.text for tick in drawing.ticks] == [
        "06:00",
        "07:00",
        "08:00",
        "09:00",
        "10:00",
        "11:00",
    ]


@given(st.lists(st.datetimes(timezones=st.just(UTC)), min_size=1, max_size=30))
def test_whatever_the_times_everything_stands_within_the_drawing(times):
    drawing = draw_timeline(list(map(moment, times)))
    assert all(0 < each.x < WIDTH for each in (*drawing.dots, *drawing.ticks, *drawing.gaps))
    assert len(drawing.ticks) <= 10
    assert len(drawing.dots) <= len(set(times))


def test_a_time_at_either_end_of_the_calendar_can_be_drawn():
    ends = [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)]
    assert draw_timeline(list(map(moment, ends)))


def test_entities_stand_in_columns_by_their_distance():
    drawing = draw_graph(brute_force())
    columns = {box.value: box.x for box in drawing.boxes}
    assert columns["203.0.113.9"] < columns["web-1.corp.example"] == columns["deploy"]
    assert columns["deploy"] < columns["10.20.0.14"] < columns["cdn.evil.example"]


def test_relations_are_arrows_and_equal_ones_are_one():
    report = brute_force()
    drawing = draw_graph(replace(report, relations=report.relations + report.relations[:1]))
    assert len(drawing.arrows) == 6
    [arrow] = [each for each in drawing.arrows if each.label.endswith("times)")]
    assert arrow.label == "203.0.113.9 connected-to web-1.corp.example (2 times)"


def test_the_words_of_a_relation_within_a_column_stand_beside_the_boxes():
    boxes = [assessed("a"), assessed("b")]
    one, other = (each.entity for each in boxes)
    tie = Relation(source=one, type=RelationType.DOWNLOADED_FROM, target=other)
    drawing = draw_graph(replace(empty(), entities=tuple(boxes), relations=(tie,)))
    [arrow] = drawing.arrows
    letter = 5.5  # as wide as one is drawn
    assert arrow.is_loop
    assert drawing.boxes[0].x + drawing.box_width < arrow.x
    assert arrow.x + letter * len(arrow.type) < drawing.width


def test_a_small_drawing_is_no_larger_than_its_letters():
    assert draw_graph(replace(empty(), entities=(assessed("a"),))).width == 704  # 44rem


def test_what_a_finding_is_about_names_the_finding():
    boxes = {box.value: box.findings for box in draw_graph(brute_force()).boxes}
    assert boxes["203.0.113.9"] == "F1 F2"
    assert boxes["10.20.0.14"] == ""


def test_the_nearest_and_worst_of_many_are_drawn_and_the_rest_is_counted():
    many = [assessed(f"far-{n}", 2) for n in range(100)]
    bad = assessed("bad", 2, Disposition.MALICIOUS)
    drawing = draw_graph(replace(empty(), entities=(*many, bad, assessed("near"))))
    assert len(drawing.boxes) == NODES
    assert [box.value for box in drawing.boxes][:2] == ["near", "bad"]
    assert "42 more entities are not drawn." in drawing.description


def test_a_relation_to_what_is_not_drawn_is_not_drawn():
    known = assessed("known")
    gone = Relation(
        source=known.entity,
        type=RelationType.SENT_TO,
        target=Entity(EntityKind.HOST, "gone"),
    )
    assert draw_graph(replace(empty(), entities=(known,), relations=(gone,))).arrows == ()


def test_no_two_boxes_overlap_and_all_stand_within_the_drawing():
    drawing = draw_graph(huge(500))
    places = {(box.x, box.y) for box in drawing.boxes}
    assert len(places) == len(drawing.boxes) == NODES
    for box in drawing.boxes:
        assert 0 <= box.x <= drawing.width - drawing.box_width
        assert 0 <= box.y <= drawing.height - drawing.box_height
    for x in {x for x, _ in places}:
        rows = sorted(y for at, y in places if at == x)
        assert all(
            later - earlier >= drawing.box_height for earlier, later in itertools.pairwise(rows)
        )


def test_a_long_value_loses_its_middle_and_wide_letters_count_twice():
    names = ["c:\\program files\\vendor\\a.exe", "漢" * 40, "short"]
    drawing = draw_graph(replace(empty(), entities=tuple(map(assessed, names))))
    assert [box.value for box in drawing.boxes] == [
        "c:\\program …endor\\a.exe",
        "漢漢漢漢漢…漢漢漢漢漢",
        "short",
    ]

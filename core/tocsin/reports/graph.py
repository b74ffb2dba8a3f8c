"""Layout of the entity graph drawing."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import fmean

from tocsin.model import Disposition, Entity, EntityAssessment, Relation, Report
from tocsin.reports.svg import EdgeCurve, shorten_middle
from tocsin.reports.text_format import clean_line, clean_value, format_count

NODES = 60
_LABELLED = 24  # edges; the labels of more would overlap
_ROWS = 12
_BOX_WIDTH, _BOX_HEIGHT = 190, 42
_COLUMN, _ROW, _MARGIN = _BOX_WIDTH + 110, _BOX_HEIGHT + 16, 12
_LEAST_WIDTH = 704  # the 44rem of the style; a narrower drawing would be scaled up
_CHARACTERS = 23  # of a value, in a box
_BEND = 50
_WORDS_AT = 0.6  # position of a label along its arrow
_WORST_FIRST = {disposition: rank for rank, disposition in enumerate(Disposition)}


@dataclass(frozen=True, slots=True)
class GraphBox:
    """An entity."""

    x: float
    y: float
    kind: str
    disposition: str
    internal: bool
    findings: str
    """The findings that it is part of: `F1 F3`."""
    value: str
    """Shortened to fit."""
    label: str


@dataclass(frozen=True, slots=True)
class GraphArrow:
    """One or more relations of one type between the same two entities."""

    path: str
    x: float
    y: float
    is_loop: bool
    """Whether it leads to the same column, so that its label is beside the curve."""
    type: str
    label: str


@dataclass(frozen=True, slots=True)
class GraphDrawing:
    """A complete drawing."""

    width: int
    height: int
    box_width: int
    box_height: int
    boxes: tuple[GraphBox, ...]
    arrows: tuple[GraphArrow, ...]
    labelled: bool
    description: str


Places = Mapping[Entity, tuple[float, float]]


def draw_graph(report: Report) -> GraphDrawing | None:
    """Return the drawing, limited to the nearest and worst entities; None without entities."""
    known = {each.entity: each for each in report.entities}
    chosen = sorted(known.values(), key=_importance)[:NODES]
    if not chosen:
        return None
    columns = _columns(chosen, report.relations)
    rows = max(map(len, columns))
    places = dict(_places(columns, rows))
    findings = _findings(report)
    relations = _distinct(report.relations, places)
    arrows = tuple(_arrow(each, count, places) for each, count in relations.items())
    return GraphDrawing(
        width=max(_COLUMN * len(columns) + 2 * _MARGIN, _LEAST_WIDTH),
        height=_ROW * rows - 16 + 2 * _MARGIN,
        box_width=_BOX_WIDTH,
        box_height=_BOX_HEIGHT,
        boxes=tuple(_box(each, places[each.entity], findings) for each in chosen),
        arrows=arrows,
        labelled=len(arrows) <= _LABELLED,
        description=_description(len(chosen), len(known), len(arrows)),
    )


def _importance(each: EntityAssessment) -> tuple[int, int, int]:
    return each.depth, _WORST_FIRST[each.disposition], -each.incident_count


def _columns(
    chosen: Sequence[EntityAssessment], relations: Sequence[Relation]
) -> list[list[Entity]]:
    """Return the entities of each column; a distance with many entities takes several columns."""
    neighbors = defaultdict(list)
    for each in relations:
        neighbors[each.source].append(each.target)
        neighbors[each.target].append(each.source)
    columns: list[list[Entity]] = []
    rows: dict[Entity, float] = {}
    for _, group in groupby(chosen, key=lambda each: each.depth):
        near = _order_by_neighbors([each.entity for each in group], neighbors, rows)
        rows |= {entity: row - len(near) / 2 for row, entity in enumerate(near)}
        columns += [near[start : start + _ROWS] for start in range(0, len(near), _ROWS)]
    return columns


def _order_by_neighbors(
    entities: Sequence[Entity],
    neighbors: Mapping[Entity, Sequence[Entity]],
    rows: Mapping[Entity, float],
) -> list[Entity]:
    """Return the entities, ordered by the mean row of their placed neighbors."""

    def middle(entity: Entity) -> float:
        placed = [rows[each] for each in neighbors.get(entity, ()) if each in rows]
        return fmean(placed) if placed else 0

    return sorted(entities, key=middle)


def _places(
    columns: Sequence[Sequence[Entity]], rows: int
) -> Iterator[tuple[Entity, tuple[float, float]]]:
    for number, column in enumerate(columns):
        top = _MARGIN + _ROW * (rows - len(column)) / 2
        for row, entity in enumerate(column):
            yield entity, (_MARGIN + _COLUMN * number, top + _ROW * row)


def _findings(report: Report) -> Mapping[Entity, list[str]]:
    members = defaultdict(list)
    for finding in report.findings:
        for entity in finding.entities:
            members[entity].append(clean_line(finding.id))
    return members


def _box(
    each: EntityAssessment, place: tuple[float, float], findings: Mapping[Entity, list[str]]
) -> GraphBox:
    named = findings.get(each.entity, [])
    return GraphBox(
        *place,
        kind=each.entity.kind.value.replace("_", " "),
        disposition=each.disposition.value,
        internal=each.internal,
        findings=shorten_middle(" ".join(named), 10),
        value=shorten_middle(clean_value(each.entity.value), _CHARACTERS),
        label=f"{clean_value(each.entity.value)}: {each.disposition}",
    )


def _distinct(relations: Sequence[Relation], places: Places) -> Counter[Relation]:
    """Return the number of reports of each relation between two drawn entities."""
    return Counter(
        Relation(source=each.source, type=each.type, target=each.target)
        for each in relations
        if each.source in places and each.target in places and each.source != each.target
    )


def _arrow(relation: Relation, count: int, places: Places) -> GraphArrow:
    """Return a curve between the nearer sides of two boxes, and the place of its label."""
    (from_x, from_y), (to_x, to_y) = places[relation.source], places[relation.target]
    backwards, beside = to_x < from_x, to_x == from_x
    out = -_BEND if backwards else _BEND
    curve = EdgeCurve(
        (from_x if backwards else from_x + _BOX_WIDTH, from_y + _BOX_HEIGHT / 2),
        (to_x + _BOX_WIDTH if backwards or beside else to_x, to_y + _BOX_HEIGHT / 2),
        out,
        out if beside else -out,
    )
    x, y = curve.at(_WORDS_AT)
    label = (
        f"{clean_value(relation.source.value)} {relation.type} {clean_value(relation.target.value)}"
    )
    return GraphArrow(
        path=curve.path,
        x=x + 5 * beside,
        is_loop=beside,
        y=y,
        type=relation.type.value,
        label=f"{label} ({count} times)" if count > 1 else label,
    )


def _description(drawn: int, total: int, arrows: int) -> str:
    rest = format_count(total - drawn, "more entity is", "more entities are")
    return (
        f"{format_count(drawn, 'entity', 'entities')}, from left to right by their distance from"
        f" the subject, and {format_count(arrows, 'relation')} between them."
        f"{f' {rest} not drawn.' if total > drawn else ''} See the tables below for details."
    )

"""The knowledge graph in the console: around a node, between two, and how large it is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from html import unescape
from itertools import pairwise
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph_rows import DOMAIN, IP, USER, Graph
from session_rows import add_session
from tocsin.events import Notifiers
from tocsin.knowledge import SearchIndexer
from tocsin.model import Node, RelationType
from tocsin.web.console.citations import AT_ONCE, build_rows, parse_source
from tocsin.web.console.graph_activity import BARS, HEIGHT, WIDTH, draw_activity
from tocsin.web.console.graph_edges import BOX
from tocsin.web.console.graph_folds import FOLDED_FROM, fold_equals
from tocsin.web.console.graph_layout import (
    MOST_EDGES,
    MOST_NODES,
    build_adjacency,
    draw_graph_around,
    measure_distances,
)

HOSTILE = "a<script>alert(1)</script>\"'{{ 7 * 7 }}&?#/ü"
HOST = Node("host", "ws-1")
_LINKS = re.compile(r'href="([^"]*)"')

on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@pytest.fixture
def graph(api) -> Graph:
    return Graph(api.services.database)


def around(value: str, **query: str) -> str:
    pairs = {"entity": value, **query}
    return "/graph?" + "&".join(f"{name}={quote(it, safe='')}" for name, it in pairs.items())


def links(html: str) -> set[str]:
    return {unescape(link) for link in _LINKS.findall(html)}


@on_sqlite
async def test_an_entity_is_drawn_and_told_with_what_every_relation_is_known_from(
    api, person, graph
):
    incident = await graph.add(IP)
    session_id = await api.services.database.write(add_session)
    await graph.tell(IP, RelationType.CONNECTED_TO, DOMAIN, known_from=f"session:{session_id}#12")
    html = await person.html(around(IP.value))
    assert html.count("<rect width") == 3
    found = links(html)
    assert f"/incidents/{incident.value}" in found
    assert f"/investigations/{session_id}" in found
    assert "step 12 of an investigation" in html
    assert around(DOMAIN.value, kind="domain") in found
    assert around(incident.value, kind="incident") in found
    text = await person.text(around(IP.value))
    assert f"ip {IP.value} connected-to domain {DOMAIN.value}" in text
    assert "1 domain, 1 incident." in text


@on_sqlite
async def test_steps_relations_kinds_and_times_narrow_it_and_go_along_with_its_links(person, graph):
    await graph.add(IP, DOMAIN)
    await graph.tell(IP, RelationType.RESOLVES_TO, HOST)
    near = await person.html(around(IP.value))
    assert around(DOMAIN.value, kind="domain") not in links(near)
    far = links(await person.html(around(IP.value, depth="2")))
    assert "/graph?depth=2&entity=bad.example&kind=domain" in far
    chosen = await person.html(around(IP.value) + "&types=resolves-to&types=part-of&kinds=host")
    assert "types=resolves-to%2Cpart-of&kinds=host&entity=ws-1&kind=host" in chosen.replace(
        "&amp;", "&"
    )
    assert 'value="resolves-to" checked' in chosen
    assert "involves domain" not in chosen
    assert "No neighbors match these filters" in await person.text(
        around(IP.value, since="2026-11-22")
    )
    later = await person.text(around(IP.value, until="2026-11-22"))
    assert "ws-1" in later


@on_sqlite
async def test_what_nothing_is_known_of_can_be_searched_for(person):
    html = await person.html(around("evil.example"), 404)
    assert "The graph does not contain &#39;evil.example&#39;." in html
    assert 'value="evil.example"' in html
    assert "/search?q=evil.example" in links(html)


@on_sqlite
async def test_a_wrong_filter_is_told_and_the_question_kept(person, graph):
    await graph.add(IP)
    for query, words in (
        ({"depth": "9"}, "depth"),
        ({"kind": "planet"}, "cloud_resource"),
        ({"since": "soon"}, "since"),
        ({"types": "likes"}, "connected-to"),
    ):
        html = await person.html(around(IP.value, **query), 422)
        assert 'class="notice bad"' in html
        assert words in html
        assert f'value="{IP.value}"' in html


@on_sqlite
async def test_without_an_entity_it_says_how_large_it_is_and_where_to_begin(
    api, person, graph, clock
):
    assert "No incidents yet." in await person.text("/graph")
    incident = await graph.add(IP, USER)
    await SearchIndexer(api.services.database, clock, Notifiers()).catch_up()
    html = await person.html("/graph")
    assert around(incident.value, kind="incident") in links(html)
    text = await person.text("/graph")
    assert "incident 1" in text
    assert "involves 2" in text


@on_sqlite
async def test_thousands_of_relations_stay_readable_and_what_is_left_out_is_said(person, graph):
    many = [Node("domain", f"{number}.example") for number in range(300)]
    await graph.add(*many)
    page = around("1", kind="incident", limit="1000", unfold="yes")
    html = await person.html(page)
    assert html.count("<rect width") == MOST_NODES
    assert html.count("<th scope=") == AT_ONCE
    assert f"The diagram shows the nearest {MOST_NODES} nodes" in html
    assert "the other 253 nodes and 253 relations" in html
    seen: set[str] = set()
    while page:
        html = await person.html(page)
        seen |= set(re.findall(r"entity=(\d+\.example)", html.partition('id="relations"')[2]))
        following = re.search(r'rel="next" href="([^"]*)"', html)
        page = unescape(following[1]).partition("#")[0] if following else ""
    assert len(seen) == 300
    bounded = await person.text(around("1", kind="incident", limit="50"))
    assert "Incomplete:" in bounded
    assert "49 or more" in bounded


@on_sqlite
@pytest.mark.parametrize("skip", ["-1", "x", "9" * 400, "²", "5000"])
async def test_any_place_in_the_list_is_a_page(person, graph, skip):
    await graph.add(IP)
    await person.html(around(IP.value, skip=skip))


@on_sqlite
async def test_the_path_between_two_is_told_step_by_step(person, graph):
    first, second = await graph.add(IP, DOMAIN), await graph.add(DOMAIN)
    page = f"/graph/path?from={IP.value}&to={second.value}&to_kind=incident"
    html = await person.html(page)
    text = await person.text(page)
    assert "3 steps" in text
    assert f"{first.value} involves {IP.value}" in text
    assert f"{second.value} involves {DOMAIN.value}" in text
    assert f"/incidents/{second.value}" in links(html)
    narrowed = await person.text(f"{page}&types=uses")
    assert "No path with 6 steps or fewer" in narrowed


@on_sqlite
async def test_a_path_to_nowhere_keeps_its_ends_and_says_what_is_unknown(person, graph):
    await graph.add(IP)
    html = await person.html(f"/graph/path?from={IP.value}&to=nowhere.example", 404)
    assert "The graph does not contain &#39;nowhere.example&#39;." in html
    assert f'value="{IP.value}"' in html
    assert 'value="nowhere.example"' in html
    assert "Enter two nodes" in await person.text("/graph/path")


@on_sqlite
async def test_hostile_values_are_shown_as_text_and_can_be_gone_to(person, graph):
    hostile = Node("file", HOSTILE)
    incident = await graph.add(hostile)
    for page in (
        around(HOSTILE),
        around(incident.value, kind="incident"),
        f"/graph/path?from={incident.value}&to={quote(HOSTILE, safe='')}",
    ):
        html = await person.html(page)
        assert "<script>alert" not in html
        assert "{{ 7 * 7 }}" in unescape(html)
    gone = [
        link for link in links(await person.html(around("1", kind="incident"))) if "=file" in link
    ]
    assert f"file {HOSTILE}" in await person.text(gone[0])


@on_sqlite
async def test_a_viewer_reads_it_as_well(viewer, graph):
    await graph.add(IP)
    for page in ("/graph", around(IP.value), f"/graph/path?from={IP.value}&to=1"):
        html = await viewer.html(page)
        assert html.count('method="post"') == 1  # signing out


@pytest.mark.parametrize(
    ("known_from", "words", "path"),
    [
        ("incident:7", "incident 7", "/incidents/7"),
        ("session:ses_1", "an investigation", "/investigations/ses_1"),
        ("session:ses_1#F2", "finding 2 of an investigation", "/investigations/ses_1"),
        ("session:ses_1#12", "step 12 of an investigation", "/investigations/ses_1"),
        ("enricher:rdap", "enricher rdap", None),
        ("what else", "what else", None),
    ],
)
def test_what_a_relation_is_known_from_leads_to_its_page(known_from, words, path):
    assert parse_source(known_from) == (words, path)


nodes = st.tuples(st.sampled_from(["ip", "incident", "session"]), st.integers(0, 40).map(str))


@st.composite
def neighborhoods(draw_from):
    """Any answer of the endpoint, whatever its edges join."""
    middle = draw_from(nodes)
    others = draw_from(
        st.lists(nodes.filter(lambda node: node != middle), unique=True, max_size=80)
    )
    known = [middle, *others]
    one = st.sampled_from(known)
    types = st.sampled_from(["involves", "found", "connected-to"])
    pairs = draw_from(st.lists(st.tuples(one, types, one), max_size=250))
    return {
        "entity": shown(middle),
        "nodes": [shown(node) for node in known],
        "edges": [edge(*pair) for pair in pairs],
    }


def shown(node: tuple[str, str]) -> dict[str, str]:
    return {"kind": node[0], "value": node[1]}


def edge(source: tuple[str, str], type_: str, target: tuple[str, str]) -> dict:
    ends = {"source": shown(source), "target": shown(target)}
    seen = dict.fromkeys(("first_seen", "last_seen"), "2026-11-21T12:00:00.000Z")
    return {**ends, **seen, "type": type_, "known_from": []}


@given(neighborhoods())
def test_no_drawing_has_boxes_that_overlap_or_leave_it(found):
    joined = build_adjacency(found["edges"])
    middle = (found["entity"]["kind"], found["entity"]["value"])
    steps = measure_distances(middle, joined)
    drawing = draw_graph_around(found, steps, joined)
    assert drawing == draw_graph_around(found, steps, joined)
    assert len(drawing.boxes) == min(len(found["nodes"]), MOST_NODES)
    assert len(drawing.boxes) + drawing.nodes_left_out == len(found["nodes"])
    assert len(drawing.lines) <= MOST_EDGES
    corners = [(box.place.x, box.place.y) for box in drawing.boxes]
    for x, y in corners:
        assert 0 <= x <= drawing.width - BOX.width
        assert 0 <= y <= drawing.height - BOX.height
    for number, (x, y) in enumerate(corners):
        for other_x, other_y in corners[:number]:
            assert abs(x - other_x) >= BOX.width or abs(y - other_y) >= BOX.height
    assert [box.is_middle for box in drawing.boxes] == [True] + [False] * (len(corners) - 1)


@given(neighborhoods())
def test_no_line_leads_behind_a_box(found):
    joined = build_adjacency(found["edges"])
    middle = (found["entity"]["kind"], found["entity"]["value"])
    drawing = draw_graph_around(found, measure_distances(middle, joined), joined)
    for line in drawing.lines:
        others = [
            box
            for number, box in enumerate(drawing.boxes)
            if number not in (line.source, line.target)
        ]
        for x, y in trace_path(line.path):
            assert 0 <= x <= drawing.width
            assert 0 <= y <= drawing.height
            for box in others:
                is_inside = 0 < x - box.place.x < BOX.width and 0 < y - box.place.y < BOX.height
                assert not is_inside, line


def trace_path(path: str) -> Iterator[tuple[float, float]]:
    """Yield points on a path of absolute curves and straight lines."""
    at = (0.0, 0.0)
    for command, text in re.findall(r"([MLCQ])([^MLCQ]*)", path):
        numbers = [float(number) for number in re.split("[ ,]+", text.strip())]
        points = list(zip(numbers[::2], numbers[1::2], strict=True))
        if command != "M":
            for part in range(21):
                yield bezier([at, *points], part / 20)
        at = points[-1]


def bezier(points: Sequence[tuple[float, float]], part: float) -> tuple[float, float]:
    while len(points) > 1:
        points = [
            (x + part * (to_x - x), y + part * (to_y - y))
            for (x, y), (to_x, to_y) in pairwise(points)
        ]
    return points[0]


@given(neighborhoods())
def test_every_relation_is_on_one_page_of_the_table(found):
    middle = (found["entity"]["kind"], found["entity"]["value"])
    steps = measure_distances(middle, build_adjacency(found["edges"]))
    pages = range(0, len(found["edges"]), AT_ONCE)
    rows = [row for page in pages for row in build_rows(found["edges"], steps, page)]
    told = sorted((row["source"]["value"], row["type"], row["target"]["value"]) for row in rows)
    assert told == sorted(
        (edge["source"]["value"], edge["type"], edge["target"]["value"]) for edge in found["edges"]
    )


def test_an_investigation_is_not_passed_through():
    edges = [
        edge(("ip", "1"), "found", ("session", "s")),
        edge(("session", "s"), "found", ("ip", "2")),
    ]
    assert measure_distances(("ip", "1"), build_adjacency(edges)) == {
        ("ip", "1"): 0,
        ("session", "s"): 1,
    }
    assert len(measure_distances(("session", "s"), build_adjacency(edges))) == 3


@given(neighborhoods())
def test_folding_keeps_the_middle_every_node_and_what_it_is_related_to(found):
    found["nodes"] = [{**node, "title": None, "severity": None} for node in found["nodes"]]
    folded = fold_equals(found)
    assert folded["nodes"][0] == found["nodes"][0]
    counts = [node.get("members", 1) for node in folded["nodes"]]
    assert sum(counts) == len(found["nodes"])
    assert all(count == 1 or count >= FOLDED_FROM for count in counts)
    keys = {(node["kind"], node["value"]) for node in folded["nodes"]}
    assert len(keys) == len(folded["nodes"])
    for each in folded["edges"]:
        assert {(end["kind"], end["value"]) for end in (each["source"], each["target"])} <= keys
    reached = measure_distances(
        (found["entity"]["kind"], found["entity"]["value"]), build_adjacency(folded["edges"])
    )
    assert all(node in keys for node in reached)


@on_sqlite
async def test_equal_incidents_are_one_node_until_each_is_shown(person, graph):
    for _ in range(5):
        await graph.add(IP, title="Beacon", severity="High")
    await graph.add(IP, title="Other", severity="Low")
    html = await person.html(around(IP.value))
    assert "5 incidents" in html
    assert '<span class="reason">Beacon</span>' in html
    assert "incident 6, Low: Other" in html
    assert html.count('<g class="node ') == 3
    [unfold] = {link for link in links(html) if "unfold=yes" in link}
    html = await person.html(unfold)
    assert html.count('<g class="node ') == 7
    assert "incident 1, High: Beacon" in html


@on_sqlite
async def test_one_group_of_equal_incidents_is_unfolded_at_a_time(person, graph):
    for severity in ("High", "Low"):
        for _ in range(5):
            await graph.add(IP, title="Beacon", severity=severity)
    html = await person.html(around(IP.value, depth="2"))
    assert html.count('<g class="node ') == 3
    for shown in (7, 11):
        html = await person.html(min(link for link in links(html) if "open=" in link))
        assert html.count('<g class="node ') == shown
    assert f"/graph?depth=2&entity={IP.value}" in links(html)  # groups the nodes again


@given(
    st.lists(
        st.integers(0, 10**9).map(lambda seconds: datetime.fromtimestamp(seconds, UTC)),
        max_size=60,
    )
)
def test_every_new_relation_is_in_one_bar(moments):
    edges = [{"first_seen": moment.isoformat()} for moment in moments]
    bars = draw_activity(edges)
    assert len(bars) <= BARS
    assert all(bar.x + bar.width <= WIDTH and bar.y + bar.height <= HEIGHT + 0.1 for bar in bars)
    if bars:
        assert sum(bar.count for bar in bars) == len(edges)
        spans = [tuple(map(datetime.fromisoformat, (bar.since, bar.until))) for bar in bars]
        assert all(end <= begin for (_, end), (begin, _) in pairwise(spans))
        for moment in moments:
            assert sum(begin <= moment < end for begin, end in spans) == 1
    elif moments:
        assert max(moments) - min(moments) < timedelta(minutes=1)


def test_bars_end_with_the_last_time_that_there_is():
    seen = ("2026-11-21T12:00:00.000Z", "9999-12-31T23:59:59.000Z")
    bars = draw_activity([{"first_seen": moment} for moment in seen])
    assert [bar.count for bar in bars] == [1, 1]
    assert bars[-1].until == "9999-12-31T23:59:59Z"

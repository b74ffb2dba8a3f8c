"""Searching everything in the console."""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from database_statements import noted_statements
from session_rows import add_session
from tocsin.knowledge import render_snippet
from tocsin.knowledge.search.snippets import SnippetPart
from tocsin.web.console.views.search import highlights

HOSTILE = "beacon <script>alert(1)</script> </mark><img src=x> \"' {{ 7 * 7 }} &amp;"
on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


def page_of(**query: str) -> str:
    return "/search?" + "&".join(f"{name}={quote(it, safe='')}" for name, it in query.items())


@on_sqlite
async def test_without_a_question_it_says_what_can_be_asked(person):
    text = await person.text("/search")
    assert "Search syntax" in text
    assert "severity:high" in text


@on_sqlite
async def test_incidents_investigations_and_entities_are_found_together(api, person, add):
    [number] = await add(title="a beacon to 203.0.113.9", entities=[("ip", "203.0.113.9")])
    session_id = await api.services.database.write(add_session)
    html = await person.html(page_of(q="203.0.113.9"))
    assert f'href="/incidents/{number}"' in html
    assert f'href="/investigations/{session_id}"' in html
    assert 'href="/graph?entity=203.0.113.9&amp;kind=ip"' in html
    assert "<mark>203.0.113.9</mark>" in html


@on_sqlite
async def test_results_have_severity_and_entities_and_kinds_are_counted(api, person, add):
    await add(title="a beacon", severity="Critical", entities=[("ip", "203.0.113.9")])
    await add(title="a beacon", severity="Low")
    text = await person.text(page_of(q="beacon"))
    assert "Everything Incidents 2 Investigations 0 Entities 0" in text
    assert "a beacon Critical New" in text
    html = await person.html(page_of(q="beacon", kind="incident"))
    assert 'href="/incidents?entity=203.0.113.9"' in html
    assert "Incidents 1" in await person.text(page_of(q="beacon severity:low"))


@on_sqlite
@pytest.mark.parametrize(
    "text", ["203.0.113.9", "ip:203.0.113.9", "ip:203.0.*", "tunnel OR 203.0.113.9"]
)
async def test_the_entity_that_was_sought_is_first_and_marked(person, add, text):
    domains = [("domain", f"{number}.example") for number in range(5)]
    await add(title="a beacon", entities=[*domains, ("ip", "203.0.113.9")])
    html = await person.html(page_of(q=text, kind="incident"))
    assert html.count("<mark>") == 1
    assert "<mark>203.0.113.9</mark>" in html
    assert "and 2 more" in html


@on_sqlite
async def test_a_page_needs_as_many_statements_for_many_results_as_for_one(api, person, add):
    async def count(text: str, results: int) -> int:
        with noted_statements(api.services.database) as statements:
            html = await person.html(page_of(q=text, kind="incident"))
        assert html.count("severity-") == results
        return len(statements)

    await add(title="a beacon")
    await add(20, title="a tunnel")
    await person.html(page_of(q="beacon"))  # prepares what every page needs
    assert await count("beacon", 1) == await count("tunnel", 20)


@on_sqlite
async def test_the_kind_narrows_it(api, person, add):
    [number] = await add(title="203.0.113.9", entities=[("ip", "203.0.113.9"), ("host", "203")])
    session_id = await api.services.database.write(add_session)
    sought = {
        f'href="/incidents/{number}"': {"incident"},
        f'href="/investigations/{session_id}"': {"session"},
        "kind=ip": {"entity", "ip"},
        "kind=host": {"entity", "host"},
    }
    for kind in ("incident", "session", "entity", "ip", "host"):
        html = await person.html(page_of(q="203", kind=kind))
        # the choice itself has the kinds too, but no link to them
        shown = {found for found in sought if found in html}
        assert shown == {found for found, kinds in sought.items() if kind in kinds}, kind


@on_sqlite
async def test_a_kind_that_is_none_is_told_with_the_right_ones(person):
    text = await person.text(page_of(q="x", kind="nonsense"), 422)
    assert "use one of" in text
    assert "file_hash" in text


@on_sqlite
async def test_a_wrong_question_shows_what_is_right_and_stays_in_its_field(person):
    html = await person.html(page_of(q='foo:"<b>"'), 422)
    assert "unknown field &#39;foo&#39;; valid fields: kind, severity" in html
    assert 'value="foo:&#34;&lt;b&gt;&#34;"' in html
    assert 'aria-invalid="true"' in html
    assert '<details id="help" class="card" open>' in html


@on_sqlite
@pytest.mark.parametrize("q", ["x" * 1001, "ab*", "x OR", '"x', "-", "\0", "before:yesterday"])
async def test_no_question_is_too_much_for_it(person, q):
    assert 'class="notice bad"' in await person.html(page_of(q=q), 422)


@on_sqlite
async def test_nothing_found_says_how_to_find_more(person):
    assert "No results." in await person.text(page_of(q="nowhere"))
    assert "No entities of this kind" in await person.text(page_of(q="nowhere", kind="ip"))


@on_sqlite
async def test_results_are_paged(person, add):
    await add(30, title="a beacon")
    first = await person.html(page_of(q="beacon"))
    assert first.count('href="/incidents/') == 25
    older = first.partition('rel="next" href="')[2].partition('"')[0].replace("&amp;", "&")
    second = await person.html(older)
    assert second.count('href="/incidents/') == 5
    assert 'rel="next"' not in second


@on_sqlite
async def test_from_an_entity_one_comes_to_all_its_incidents(person, add):
    await add(title="the one", entities=[("file_hash", "d41d8cd98f00b204e9800998ecf8427e")])
    await add(title="another", entities=[("ip", "203.0.113.9")])
    html = await person.html("/search?q=d41d8cd98f00b204e9800998ecf8427e")
    place = re.search(r'href="(/search\?q=hash[^"]+)"', html)[1]
    text = await person.text(place.replace("&amp;", "&"))
    assert "Incidents 1" in text
    assert "the one" in text
    assert "another" not in text


async def test_entities_are_a_few_beside_the_rest_and_all_by_themselves(person, add):
    await add(entities=[("ip", f"203.0.113.{number}") for number in range(60)])
    beside = await person.html(page_of(q="203.0"))
    assert beside.count('href="/graph?') == 10
    assert "View all matching entities" in beside
    alone = await person.html(page_of(q="203.0", kind="entity"))
    assert alone.count('href="/graph?') == 50
    older = alone.partition('rel="next" href="')[2].partition('"')[0].replace("&amp;", "&")
    assert (await person.html(older)).count('href="/graph?') == 10


@on_sqlite
async def test_hostile_text_is_shown_as_text_and_what_was_sought_is_marked(person, add):
    await add(title=HOSTILE, description=HOSTILE, entities=[("file", HOSTILE)])
    html = await person.html(page_of(q="beacon"))
    assert "<script>alert" not in html
    assert "<img" not in html
    assert "<mark>beacon</mark>" in html
    assert "{{ 7 * 7 }}" in html
    assert HOSTILE in await person.text(page_of(q="beacon"))
    assert "<script>alert" not in await person.html(page_of(q=HOSTILE), 422)


@on_sqlite
async def test_a_viewer_searches_as_well(viewer, add):
    await add(title="a beacon")
    assert "a beacon" in await viewer.text(page_of(q="beacon"))


@given(
    st.lists(
        st.tuples(
            st.one_of(st.sampled_from(["<mark>", "</mark>", "&lt;", HOSTILE]), st.text(min_size=1)),
            st.booleans(),
        )
    )
)
def test_any_snippet_is_read_back_as_it_was(parts):
    alternating = [part for part in parts if part[0]]
    snippet = render_snippet([SnippetPart(text, hit) for text, hit in alternating])
    told = highlights(snippet)
    assert "".join(text for text, _ in told) == "".join(text for text, _ in alternating)
    assert [text for text, hit in told if hit] == [text for text, hit in alternating if hit]

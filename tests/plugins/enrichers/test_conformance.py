"""Properties of every shipped enricher, for any entity."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tocsin import Enrichment, Entity, EntityKind, PluginFailure
from tocsin.enrichment.sanitizer import sanitize_enrichments
from tocsin_plugins import abuseipdb, enrichers, greynoise, misp, rdap, virustotal
from tocsin_plugins.enrichers import Lists

ONLINE = (abuseipdb, greynoise, misp, rdap, virustotal)
OFFLINE = enrichers.tocsin_enrichers()
ALL = [*OFFLINE, *(kind for module in ONLINE for kind in module.tocsin_enrichers())]
UNREACHABLE = {"url": "http://127.0.0.1:9", "api_key": "k"}

VALUES = st.one_of(
    st.text(max_size=80),
    st.ip_addresses().map(str),
    st.from_regex(r"([a-z0-9-]{1,20}\.){1,4}[a-z]{2,6}", fullmatch=True),
    st.sampled_from(
        ["xn--a", "xn--" + "9" * 60, "http://[", "http://[::1]:x/", "a@", "@", ".", "..", "::%x"]
    ),
    st.from_regex(r"https?://[a-z]{1,9}(\.[a-z]{2,9}){1,3}(:[0-9]{1,6})?/\S{0,20}", fullmatch=True),
)
several = st.lists(st.builds(Entity, st.sampled_from(EntityKind), VALUES), max_size=8, unique=True)
with_one_enricher = settings(
    max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(params=OFFLINE, ids=lambda kind: kind.name)
def enricher(request, make, tmp_path):
    if request.param is Lists:
        path = tmp_path / "list.csv"
        path.write_text("10.0.0.0/8\n2001::/16\na.aa\n")
        return make(Lists, path=str(path), list="watch")
    return make(request.param, own=["example.com"])


def test_names_are_unique():
    assert len({kind.name for kind in ALL}) == len(ALL)


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.name)
def test_what_a_kind_says_of_itself_holds(kind):
    assert kind.kinds <= frozenset(EntityKind)
    assert kind.kinds
    assert kind.batch >= 1
    assert kind.__doc__
    if kind.standing:
        kind.Settings(plugin="test")
    assert all(field.description for field in kind.Settings.model_fields.values())


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.name)
def test_only_those_that_ask_outside_do(kind):
    assert kind.online is (kind not in OFFLINE)


@with_one_enricher
@given(several)
def test_whatever_is_asked_each_is_answered_in_order_and_always_alike(enricher, entities):
    assert_sound(enricher, entities)


@pytest.mark.full
@settings(with_one_enricher, max_examples=300)
@given(several)
def test_whatever_is_asked_holds_for_very_much_of_it(enricher, entities):
    assert_sound(enricher, entities)


def assert_sound(enricher, entities):
    """Assert that what is said is the same again, in order, and the same of each alone."""
    asked = [entity for entity in entities if entity.kind in enricher.kinds]

    async def several_times():
        together = await enricher.enrich(asked), await enricher.enrich(asked)
        return *together, [
            enrichment for one in asked for enrichment in await enricher.enrich([one])
        ]

    said, again, alone = asyncio.run(several_times())
    assert list(said) == list(again) == alone
    assert all(isinstance(enrichment, Enrichment) for enrichment in said)
    told = [enrichment.entity for enrichment in said]
    assert told == [entity for entity in asked if entity in told]
    assert list(sanitize_enrichments(said, asked)) == asked


@pytest.mark.parametrize("kind", ALL[len(OFFLINE) :], ids=lambda kind: kind.name)
async def test_one_that_asks_outside_raises_nothing_but_what_plugins_raise(kind, make):
    given_to_it = (
        UNREACHABLE if "api_key" in kind.Settings.model_fields else {"url": "http://127.0.0.1:9"}
    )
    enricher = make(kind, **given_to_it)
    for value in ("198.51.100.7", "evil.example", "http://[", "ab" * 16, "x" * 2000):
        for entity_kind in sorted(kind.kinds):
            try:
                assert await enricher.enrich([Entity(entity_kind, value)]) == []
            except PluginFailure:
                continue

"""Shared parts of the cluster providers: authentication, pagination, documents."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from tocsin import ApiResponse, Broken, Entity, EntityKind, SiemEvent, TryLater, Window
from tocsin.testing import make_settings
from tocsin_connectors.siem.indices.client import (
    MAX_HITS,
    MAX_PAGE_SIZE,
    MAX_SAME_TIMESTAMP,
    DocumentCursor,
    IndexClient,
    IndexSearchResult,
    LogIndices,
    build_events,
    iterate_latest,
    parse_search,
)
from tocsin_connectors.siem.indices.documents import (
    build_entity_query,
    decode_object,
    include_queried_entity,
)
from tocsin_connectors.siem.records import text_at, value_at
from tocsin_connectors.siem.wazuh import Wazuh

WINDOW = Window(datetime(2026, 11, 20, tzinfo=UTC), datetime(2026, 11, 21, tzinfo=UTC))
WHOLE = {
    "timed_out": False,
    "_shards": {"total": 3, "successful": 3, "skipped": 0, "failed": 0},
    "hits": {"total": {"value": 1, "relation": "eq"}, "hits": [{"_id": "a"}]},
}


def settings(**given):
    return make_settings(Wazuh, url="https://indexer.example.com:9200", **given)


@pytest.mark.parametrize(
    "given", [{}, {"username": "ann"}, {"password": "x"}, {"token": "x", "username": "ann"}]
)
def test_credentials_are_required(given):
    with pytest.raises(ValidationError, match="`username` and `password`"):
        settings(**given)


@pytest.mark.parametrize(
    ("given", "authorization"),
    [
        ({"username": "ann", "password": "ü:"}, {"Authorization": "Basic YW5uOsO8Og=="}),
        ({"username": "ann", "password": "x", "token": "a.b.c"}, {"Authorization": "Bearer a.b.c"}),
        ({"client_certificate": "tocsin.pem"}, {}),
    ],
)
def test_credentials_become_the_authorization_header(given, authorization):
    assert settings(**given).authorization == authorization


def test_cursor_has_the_ids_of_the_last_timestamp():
    def hits(*stamps):
        return [{"_id": f"{at}-{n}", "sort": [at]} for n, at in enumerate(stamps)]

    first = DocumentCursor.after(hits(1, 2, 2), None)
    assert first == DocumentCursor(2, ("2-1", "2-2")) == DocumentCursor.decode(first.encode())
    assert DocumentCursor.after([{"_id": "x", "sort": [2]}], first).seen == ("2-1", "2-2", "x")
    assert DocumentCursor.after(hits(2, 3), first) == DocumentCursor(3, ("3-1",))


@pytest.mark.parametrize(
    "hit", [{"_id": "x"}, {"_id": "x", "sort": []}, {"_id": "x", "sort": ["y"]}, {"sort": [1]}]
)
def test_hits_without_sort_or_id_are_broken(hit):
    with pytest.raises(Broken):
        DocumentCursor.after([hit], None)


def test_too_many_documents_of_one_time_are_broken():
    crowd = DocumentCursor(1, tuple(map(str, range(MAX_SAME_TIMESTAMP))))
    with pytest.raises(Broken, match="have the same timestamp"):
        DocumentCursor.after([{"_id": "x", "sort": [1]}], crowd)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"timed_out": True}, TryLater),
        ({"_shards": {"total": 3, "successful": 1, "failed": 2}}, TryLater),
        ({"_shards": {"total": 3, "successful": 2, "failed": 0}}, TryLater),  # no node has one
        ({"_clusters": {"total": 2, "successful": 1, "skipped": 1}}, TryLater),
        ({"_shards": {}}, Broken),
        ({"_shards": {"total": 3, "failed": 0}}, Broken),
        ({"timed_out": None}, Broken),
        ({"hits": {"hits": []}}, Broken),
        ({"hits": {"total": 1, "hits": ["a"]}}, Broken),
        ({"hits": None}, Broken),
    ],
)
def test_only_complete_responses_count(change, error):
    found = parse_search(ApiResponse(WHOLE, 200, {}, None), "a search")
    assert (len(found.hits), found.total, found.shards) == (1, 1, 3)
    with pytest.raises(error):
        parse_search(ApiResponse(WHOLE | change, 200, {}, None), "a search")


@pytest.mark.parametrize("value", ["198.51.100.0/24", "198.51.100.*", "", "::1%eth0"])
def test_invalid_addresses_are_not_searched(value):
    fields = {EntityKind.IP: ("source.ip",), EntityKind.USER: ("user.name",)}
    assert build_entity_query(Entity(EntityKind.IP, "203.0.113.7"), fields) is not None
    if clause := build_entity_query(Entity(EntityKind.IP, value), fields):
        assert value.partition("%")[0] in str(clause)  # an address, less its zone
        assert "%" not in str(clause)
    assert build_entity_query(Entity(EntityKind.DOMAIN, "example.com"), fields) is None


class Endless:
    """A cluster with no end of documents, none of which names what was asked for after all."""

    def __init__(self):
        self.searches = 0

    async def search(self, indices, body):
        self.searches += 1
        first = self.searches * MAX_PAGE_SIZE
        hits = [
            {"_id": str(number), "sort": [-number]} for number in range(first, first + body["size"])
        ]
        return IndexSearchResult(hits, body["size"] + 1, 1, {}, None)


async def test_documents_are_fetched_by_the_hundred():
    class Asked(IndexClient):
        def __init__(self):
            self.sizes = []

        async def search(self, indices, body):
            names = body["query"]["ids"]["values"]
            self.sizes.append(body["size"])
            return IndexSearchResult([{"_id": name} for name in names], len(names), 1, {}, None)

    cluster, names = Asked(), [str(number) for number in range(250)]
    assert [document["_id"] for document in await cluster.documents("alerts", names)] == names
    assert cluster.sizes == [100, 100, 50]
    assert await Asked().documents("alerts", []) == []


async def test_search_without_matches_terminates():
    cluster = Endless()
    hits = iterate_latest(
        LogIndices(cluster, "logs-*", "@timestamp"), {"match_all": {}}, WINDOW, 1_000
    )
    with pytest.raises(TryLater, match="search limit reached after the latest"):
        [event async for event in build_events(hits, lambda _: None, 1_000)]
    assert cluster.searches == MAX_HITS // MAX_PAGE_SIZE


async def test_search_with_enough_events_is_complete():
    cluster = Endless()
    hits = iterate_latest(LogIndices(cluster, "logs-*", "@timestamp"), {"match_all": {}}, WINDOW, 5)
    event = SiemEvent(external_id=None, occurred_at=WINDOW.start, summary="signed in")
    assert len([item async for item in build_events(hits, lambda _: event, 5)]) == 5
    assert cluster.searches == 1


@pytest.mark.parametrize("told", ["Ann", ["bob", "ANN"], None, ["bob"]])
def test_queried_entity_is_included(told):
    ann, web = Entity(EntityKind.USER, "ann"), Entity(EntityKind.HOST, "web-1")
    fields = {EntityKind.USER: ("user.target.name",)}
    found = include_queried_entity([web], ann, {"user": {"target.name": told}}, fields)
    assert found == (None if told in (None, ["bob"]) else (ann, web))
    assert (
        include_queried_entity([web, Entity(EntityKind.USER, "ANN")], ann, {}, fields) is not None
    )


def test_nested_and_dotted_documents_are_read():
    document = {"a.b": {"c": 1}, "a": {"b.d": [True, "\0 x "], "e": {"f.g": 2}}, "h": [None]}
    assert [value_at(document, name) for name in ("a.b.c", "a.e.f.g", "a.b.x")] == [1, 2, None]
    assert text_at(document, "h", "a.b.d") == "x"
    assert (text_at("no document", "a"), text_at({"a": 7}, "a")) == (None, "7")


def test_json_strings_are_decoded():
    assert decode_object('{"a": 1}') == decode_object({"a": 1}) == {"a": 1}
    for value in ("[1]", "{", "", None, 7, '{"a": "\ud800"}'):
        assert decode_object(value) is None

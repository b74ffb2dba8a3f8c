"""The lists of API keys and of API clients, which are paged and searched alike."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from dataclasses import dataclass
from itertools import count

import pytest

from api_callers import AUDIT, CLIENT_MEMBERS, CLIENTS, INCIDENTS, KEY_MEMBERS, KEYS, Admin
from api_server import URL, problem
from incident_rows import add_incidents
from tocsin.credentials import Scope


@dataclass
class Listing:
    """One of the lists, and how to put something into it."""

    admin: Admin
    path: str
    name: str
    identifier: str
    members: set[str]

    async def add(self, **body) -> str:
        create = self.admin.create_key if self.path == KEYS else self.admin.create_client
        return (await create(**body))[self.identifier]

    async def page(self, **query) -> dict:
        return await self.admin.read(self.path, **query)

    async def found(self, search: str) -> list[str]:
        page = await self.page(search=search)
        assert page["total"] == len(page[self.name])
        return [item["name"] for item in page[self.name]]


@pytest.fixture(params=["keys", "clients"])
def listing(request, admin) -> Listing:
    if request.param == "keys":
        return Listing(admin, KEYS, "api_keys", "key_id", KEY_MEMBERS)
    return Listing(admin, CLIENTS, "clients", "client_id", CLIENT_MEMBERS)


async def walk(listing: Listing, meanwhile=None, **query) -> list[str]:
    """Return the identifiers of every page, with something done between the pages."""
    found, page = [], await listing.page(**query)
    while True:
        found += [item[listing.identifier] for item in page[listing.name]]
        if page["next_cursor"] is None:
            return found
        if meanwhile is not None:
            await meanwhile()
        page = await listing.page(**query, cursor=page["next_cursor"])


async def test_an_empty_list_has_its_members_too(listing):
    assert await listing.page() == {listing.name: [], "total": 0, "next_cursor": None}


async def test_items_carry_exactly_the_members_of_the_specification(listing):
    await listing.add()
    page = await listing.page()
    assert set(page) == {listing.name, "total", "next_cursor"}
    assert [set(item) for item in page[listing.name]] == [listing.members]


async def test_an_item_is_what_the_record_is_read_as(listing):
    identifier = await listing.add(description="x")
    [item] = (await listing.page())[listing.name]
    assert item == await listing.admin.read(f"{listing.path}/{identifier}")


async def test_the_newest_comes_first(listing, clock):
    added = []
    for _ in range(3):
        added.append(await listing.add())
        clock.advance(seconds=1)
    assert await walk(listing) == added[::-1]


async def test_pages_follow_each_other_and_the_total_is_exact(listing, clock):
    added = []
    for _ in range(5):
        added.append(await listing.add())
        clock.advance(seconds=1)
    sizes, query = [], {}
    for expected in (added[:2:-1], added[2:0:-1], added[:1]):
        page = await listing.page(limit=2, **query)
        assert [item[listing.identifier] for item in page[listing.name]] == expected
        assert page["total"] == 5
        sizes.append(len(expected))
        query = {"cursor": page["next_cursor"]}
    assert sizes == [2, 2, 1]
    assert query == {"cursor": None}


async def test_a_last_page_that_is_full_has_no_next_one(listing):
    for _ in range(2):
        await listing.add()
    response = await listing.admin.send("GET", listing.path, params={"limit": 2})
    assert (await response.json())["next_cursor"] is None
    assert "Link" not in response.headers


async def test_the_next_page_is_linked_with_whatever_else_was_asked_for(listing):
    for _ in range(3):
        await listing.add(name="a&b>; c=é")
    query = {"limit": "1", "search": "&b>; C=É"}
    response = await listing.admin.send("GET", listing.path, params=query)
    page = await response.json()
    link = response.links["next"]["url"]
    assert str(link).startswith(f"{URL}{listing.path}?")
    assert dict(link.query) == query | {"cursor": page["next_cursor"]}
    following = await listing.admin.read(link.raw_path_qs)
    assert following == await listing.page(**query, cursor=page["next_cursor"])
    assert following["total"] == 3


async def test_what_is_created_while_pages_are_turned_moves_nothing(listing, clock):
    before = [await listing.add() for _ in range(4)]

    async def meanwhile():
        clock.advance(seconds=1)
        await listing.add()

    found = await walk(listing, meanwhile, limit=1)
    assert sorted(found) == sorted(before)


async def test_what_is_created_in_the_same_instant_neither_hides_nor_repeats_anything(listing):
    before = [await listing.add() for _ in range(4)]
    found = await walk(listing, listing.add, limit=2)
    assert len(found) == len(set(found))
    assert set(before) <= set(found)


async def test_without_a_limit_there_are_fifty_to_a_page(listing, api):
    await _store_many(listing, api, 51)
    page = await listing.page()
    assert (len(page[listing.name]), page["total"]) == (50, 51)
    assert len((await listing.page(limit=200))[listing.name]) == 51


async def _store_many(listing: Listing, api, number: int) -> None:
    """Without the price of that many Argon2ids."""
    store = api.key if listing.path == KEYS else api.client_credentials
    hashed = await api.services.hasher.hash("x")

    async def cheap(_secret: str) -> str:
        return hashed

    api.services.hasher.hash = cheap
    for _ in range(number):
        await store(Scope.SEARCH_READ)


async def test_search_matches_name_description_identifier_creator_and_scopes(listing, api):
    plain = {"name": "plain", "scopes": ["graph:read"]}
    named = await listing.add(**plain | {"name": "Night Shift"})
    await listing.add(**plain | {"name": "b", "description": "for\nthe Day shift"})
    await listing.add(**plain | {"name": "c", "scopes": ["incidents:read", "search:read"]})
    assert await listing.found("night") == ["Night Shift"]
    assert await listing.found("THE DAY") == ["b"]
    assert await listing.found(named) == ["Night Shift"]
    assert await listing.found(named.swapcase()) == ["Night Shift"]
    assert await listing.found("Search:Read") == ["c"]
    assert sorted(await listing.found("ANA")) == ["Night Shift", "b", "c"]
    assert await listing.found("nothing like it") == []


@pytest.mark.parametrize(
    ("name", "search"),
    [("München", "MÜNCHEN"), ("STRASSE", "straße"), ("ΣΊΣΥΦΟΣ", "σίσυφος"), ("Ключ", "КЛЮЧ")],
)
async def test_search_knows_no_case_in_any_script(listing, name, search):
    await listing.add(name=name)
    assert await listing.found(search) == [name]
    assert await listing.found(name) == [name]


@pytest.mark.parametrize("character", ["%", "_", "\\", "/", "'", '"', "*", "[a]", "?"])
async def test_search_takes_every_character_for_itself(listing, character):
    await listing.add(name=f"a{character}b")
    await listing.add(name="aab")
    assert await listing.found(f"A{character}B") == [f"a{character}b"]


@pytest.mark.parametrize(
    "query",
    [
        {"limit": "0"},
        {"limit": "201"},
        {"limit": "x"},
        {"limit": ""},
        {"cursor": ""},
        {"cursor": "x"},
        {"cursor": "é"},
        {"cursor": "A" * 1000},
        {"search": "x" * 201},
        {"search": "\0"},
        {"offset": "1"},
        [("limit", "1"), ("limit", "1")],
    ],
    ids=str,
)
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_wrong_parameter_is_named(listing, query):
    response = await listing.admin.send("GET", listing.path, params=query)
    [error] = (await problem(response, 422))["errors"]
    assert error["path"] == dict(query).popitem()[0]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_every_wrong_parameter_is_named_at_once(listing):
    query = {"limit": "0", "cursor": "x", "offset": "1"}
    response = await listing.admin.send("GET", listing.path, params=query)
    errors = (await problem(response, 422))["errors"]
    assert {error["path"] for error in errors} == set(query)


async def test_a_cursor_of_another_list_is_refused(api, admin):
    """Each list's cursor is taken by that list alone, and the rest say so."""
    for _ in range(2):
        await admin.create_key()
        await admin.create_client()
    await api.services.database.write(add_incidents, 2)
    reader = await api.reader()
    cursors, numbers = {}, count()
    for path in (KEYS, CLIENTS, AUDIT, INCIDENTS):
        headers = reader if path == INCIDENTS else admin.headers
        response = await api.client.get(path, params={"limit": 1}, headers=headers)
        cursors[path] = (await response.json())["next_cursor"], headers
    for path, (own, headers) in cursors.items():
        for cursor, _ in cursors.values():
            response = await api.client.get(path, params={"cursor": cursor}, headers=headers)
            if cursor == own:
                assert response.status == 200
            else:
                await problem(response, 422)
            next(numbers)
    assert next(numbers) == 16


@pytest.mark.parametrize("place", ["k:1", "k:" + "Z" * 26, "c:1", "k:", "k", "kk:1", "k:\n1"])
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_cursor_that_was_made_up_breaks_nothing(listing, place):
    await listing.add()
    cursor = urlsafe_b64encode(place.encode()).decode().rstrip("=")
    response = await listing.admin.send("GET", listing.path, params={"cursor": cursor})
    assert response.status in {200, 422}

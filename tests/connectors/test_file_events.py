"""Event searches in files."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
from contextlib import aclosing
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tocsin import Entity, EntityKind, TryLater, Window
from tocsin_connectors.siem.files import search as file_search
from tocsin_connectors.siem.files.prefilter import build_needles

START = datetime(2024, 11, 20, 12, tzinfo=UTC)
"""When the record 0 happened; each later one a minute after the one before."""
EVER = Window(START, START + timedelta(days=30))
ADDRESS = Entity(EntityKind.IP, "198.51.100.9")
OTHER = Entity(EntityKind.IP, "198.51.100.90")


def line(number, *entities: Entity) -> str:
    of = [[entity.kind.value, entity.value] for entity in entities]
    return json.dumps({"n": number, "of": of}) + "\n"


def log(path, *numbers, of: Entity = ADDRESS):
    with path.open("a") as file:
        file.writelines(line(number, of) for number in numbers)


async def ask(feed, entity=ADDRESS, window=EVER, limit=100) -> list[int]:
    """Return the numbers of the records that are found, in order of their time."""
    async with aclosing(feed.provider.events(entity, window, limit)) as events:
        return sorted([int(event.external_id) async for event in events])


async def ask_in_vain(feed) -> tuple[list[int], TryLater]:
    """Return the numbers of what is found before it fails, and how it does."""
    found = []
    try:
        async for event in feed.provider.events(ADDRESS, EVER, 100):
            found.append(int(event.external_id))  # noqa: PERF401 - what came before it failed
    except TryLater as error:
        return found, error
    raise AssertionError("it did not fail")


@pytest.fixture
def rotated(eve):
    return eve.with_name("eve.json.1")


async def test_rotated_and_compressed_files_are_searched(feed, eve, rotated, compress):
    log(older := eve.with_name("eve.json.2"), 1, 2)
    compress(older)
    log(rotated, 3)
    log(eve, 4)
    assert await ask(feed) == [1, 2, 3, 4]


async def test_only_events_of_window_and_entity_are_found(feed, eve):
    log(eve, *range(10))
    log(eve, *range(10), of=OTHER)
    window = Window(START + timedelta(minutes=3), START + timedelta(minutes=6))
    assert await ask(feed, window=window) == [3, 4, 5]
    assert await ask(feed, Entity(EntityKind.DOMAIN, ADDRESS.value)) == []


async def test_latest_events_are_found_in_any_file(feed, eve, rotated, compress):
    log(rotated, 7, 1, 9)
    compress(rotated)
    log(eve, 2, 8, 3)
    assert await ask(feed, limit=3) == [7, 8, 9]
    assert await ask(feed, limit=0) == []


async def test_copied_lines_are_found_once(feed, eve, rotated, compress):
    log(eve, 1, 2)
    rotated.write_bytes(eve.read_bytes())
    compress(rotated, keep=True)
    assert await ask(feed) == [1, 2]


async def test_search_does_not_use_the_position(feed, eve, write):
    write(eve, 1)
    await feed.read()
    log(eve, 2)
    position = feed.position
    assert await ask(feed) == [2]
    assert feed.position == position
    await feed.read()
    assert feed.ids == ["1", "2"]


async def test_file_last_written_before_the_window_is_not_opened(feed, eve, rotated):
    log(rotated, 1)
    os.utime(rotated, (START.timestamp(), START.timestamp()))
    log(eve, 100)
    later = Window(START + timedelta(hours=1), EVER.end)
    rotated.chmod(0)
    assert await ask(feed, window=later) == [100]


async def test_invalid_or_long_lines_hide_nothing(feed, eve, monkeypatch):
    monkeypatch.setattr(file_search, "BLOCK_SIZE", 1000)
    monkeypatch.setattr(file_search, "MAX_LINE_LENGTH", 3000)
    log(eve, 1)
    with eve.open("a") as file:
        file.write(
            '{"n": 198.51.100.9\n198.51.100.9\n["198.51.100.9"]\n{"of": 7, "n": "198.51.100.9"}\n'
        )
        file.write('{"n": 2, "x": "' + "198.51.100.9 " * 2000 + '"}\n\n')
    log(eve, 3)
    with eve.open("a") as file:
        file.write('{"n": 4, "of": [["ip", "198.51.100.9')
    assert await ask(feed) == [1, 3]


@pytest.mark.parametrize("compressed", [False, True])
@given(
    sizes=st.lists(st.integers(0, 40), max_size=40),
    chunk=st.integers(1, 90),
)
def test_blocks_contain_every_line_once(tmp_path_factory, sizes, chunk, compressed):
    content = b"\n".join(b"x" * size for size in sizes)
    path = tmp_path_factory.mktemp("blocks") / "file"
    path.write_bytes(gzip.compress(content) if compressed else content)
    with pytest.MonkeyPatch.context() as patch, path.open("rb") as file:
        patch.setattr(file_search, "BLOCK_SIZE", chunk)
        size = path.stat().st_size
        found = [
            block for block in file_search.read_blocks(file, size, compressed=compressed) if block
        ]
    if not compressed:
        found.reverse()
    assert b"".join(found) == content
    assert all(block.endswith(b"\n") for block in found[:-1])


async def test_damaged_file_is_searched_up_to_the_damage(feed, eve, compress):
    log(aside := eve.with_name("eve.json.1"), *range(50))
    packed = compress(aside)
    packed.write_bytes(packed.read_bytes()[:-30])
    log(eve, 1000)
    assert 1000 in await ask(feed)


async def test_incomplete_search_is_reported(feed, eve, monkeypatch):
    monkeypatch.setattr(file_search, "BLOCK_SIZE", 100)
    monkeypatch.setattr(file_search, "MAX_SEARCHED_BYTES", 3 * file_search.BLOCK_SIZE)
    log(eve, *range(100))
    found, error = await ask_in_vain(feed)
    assert "search limit reached" in str(error)
    assert 0 < len(found) < 100
    assert max(found) == 99


async def test_unreadable_file_is_reported_after_the_results(feed, eve, rotated, monkeypatch):
    log(eve, 1)
    log(rotated, 2)

    def refuse(path):
        raise PermissionError(13, "Permission denied", path)

    own = file_search.FileSearch._search
    monkeypatch.setattr(
        file_search.FileSearch,
        "_search",
        lambda self, path: refuse(path) if path == str(rotated) else own(self, path),
    )
    found, error = await ask_in_vain(feed)
    assert (found, str(error)) == ([1], f"{rotated}: Permission denied")


async def test_rotation_during_search_loses_nothing(feed, eve, rotated, monkeypatch):
    log(rotated, 1)
    log(eve, 2)
    own, moved = file_search.FileSearch._search, []

    def search(self, path):
        if not moved:
            moved.append(rotated.rename(eve.with_name("eve.json.2")))
            eve.rename(rotated)
            log(eve, 3)
        return own(self, path)

    monkeypatch.setattr(file_search.FileSearch, "_search", search)
    assert await ask(feed) == [1, 2, 3]


async def test_search_can_be_canceled(feed, eve, monkeypatch):
    monkeypatch.setattr(file_search, "BLOCK_SIZE", 50)
    log(eve, *range(2000))
    asking = asyncio.create_task(ask(feed))
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking


@pytest.mark.parametrize(
    ("entity", "written"),
    [
        (Entity(EntityKind.IP, "2001:db8::9"), "2001:0db8:0000:0000:0000:0000:0000:0009"),
        (Entity(EntityKind.IP, "2001:db8::9"), "2001:DB8:0:0:0:0:0:9"),
        (Entity(EntityKind.URL, "http://evil.example/a/b"), r"http:\/\/evil.example\/a\/b"),
        (Entity(EntityKind.DOMAIN, "evil.example"), "EVIL.Example"),
        (Entity(EntityKind.USER, "o'brien"), r"o\u0027brien"),
        (Entity(EntityKind.USER, "jürgen"), r"j\u00fcrgen"),
        (Entity(EntityKind.FILE, r"C:\Temp\a.exe"), r"C:\\Temp\\a.exe"),
        (Entity(EntityKind.CVE, "CVE-2024-12345"), "CVE_2024_12345"),
    ],
)
def test_entity_is_found_in_any_encoding(entity, written):
    assert any(needle in written.lower().encode() for needle in build_needles(entity))
    assert all(build_needles(entity))


@given(value=st.text(min_size=1), ascii_only=st.booleans())
@example(value="鐘", ascii_only=True)
def test_prefilter_has_no_false_negatives(value, ascii_only):
    written = json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass").lower()
    entity = Entity(EntityKind.USER, value.encode("utf-8", "replace").decode())
    assert any(needle in written for needle in build_needles(entity))


@pytest.mark.full
async def test_a_gigabyte_is_searched_in_seconds(feed, eve, clock):
    noise = "".join(line(number, OTHER) for number in range(10_000))
    with eve.open("w") as file:
        while file.tell() < 2**30:
            file.write(noise)
        file.write(line(20_000, ADDRESS))
    begun = datetime.now(UTC)
    assert await ask(feed, Entity(EntityKind.IP, "203.0.113.5")) == []
    assert datetime.now(UTC) - begun < timedelta(seconds=30)
    assert await ask(feed, limit=1) == [20_000]

"""Reading of files through every kind of rotation."""

from __future__ import annotations

import gzip
import os
import shutil
from datetime import timedelta

import pytest

from tocsin import TryLater
from tocsin_connectors.siem.files import discovery, reader

A_WHILE = timedelta(minutes=2)


@pytest.fixture
def rotated(eve):
    return eve.with_name("eve.json.1")


@pytest.mark.parametrize(
    "name",
    [
        "eve.json.1",
        "eve.json.21",
        "eve.json-20241101",
        "eve.json-2024-11-01",
        "eve-20241101.json",
        "eve-2024-11-01-13.json",
    ],
)
async def test_rotated_siblings_are_read(feed, eve, write, compress, name):
    write(eve.with_name(name), 1)
    write(other := eve.with_name(name.replace("1", "3")), 2)
    compress(other)
    write(eve, 3)
    await feed.read(A_WHILE)
    assert sorted(feed.ids) == ["1", "2", "3"]


@pytest.mark.parametrize("name", ["eve.json.bak", "eve.jsonl", "eve-stats.json", "x-eve.json.1"])
async def test_other_files_are_left_alone(feed, eve, write, name):
    write(eve.with_name(name), 1)
    write(eve, 2)
    await feed.read()
    assert feed.ids == ["2"]


async def test_the_oldest_file_is_read_first(feed, eve, rotated, write):
    write(eve, 2)
    write(rotated, 1)
    os.utime(rotated, (0, 1))
    feed.position = {"version": 1, "files": []}
    await feed.read()
    assert feed.ids == ["1", "2"]


async def test_glob_matches_can_rotate(make_feed, tmp_path, write):
    write(tmp_path / "a.json", 1)
    write(tmp_path / "b.json", 2)
    feed = make_feed(tmp_path / "[ab].json")
    await feed.read()
    (tmp_path / "a.json").rename(tmp_path / "a.json.1")
    write(tmp_path / "a.json", 3)
    await feed.read()
    assert sorted(feed.ids) == ["1", "2", "3"]


async def test_one_file_under_two_names_is_read_once(make_feed, tmp_path, write):
    write(tmp_path / "a.json", 1)
    (tmp_path / "b.json").symlink_to("a.json")
    feed = make_feed(tmp_path / "*.json")
    await feed.read()
    assert feed.ids == ["1"]


async def test_the_rest_of_a_renamed_file_is_read(feed, eve, rotated, write):
    write(eve, 1)
    await feed.read()
    write(eve, 2)
    eve.rename(rotated)
    write(rotated, 3)
    write(eve, 4)
    await feed.read()
    assert sorted(feed.ids) == ["1", "2", "3", "4"]
    assert feed.lost == []


async def test_a_rename_alone_updates_the_position(feed, eve, rotated, write):
    write(eve, 1)
    await feed.read()
    eve.rename(rotated)
    eve.touch()
    pages = await feed.read()
    assert [(page.incidents, page.covered) for page in pages] == [((), ())]
    assert await feed.read() == []


async def test_between_rename_and_creation_the_rest_is_read(feed, eve, rotated, write):
    write(eve, 1)
    await feed.read()
    write(eve, 2)
    eve.rename(rotated)
    with pytest.raises(TryLater):
        await feed.read()
    write(eve, 3)
    await feed.read()
    assert feed.ids == ["1", "2", "3"]


async def test_a_compressed_sibling_is_known_by_its_content(feed, eve, rotated, write, compress):
    write(eve, 1)
    await feed.read()
    write(eve, 2)
    eve.rename(rotated)
    compress(rotated)
    write(eve, 3)
    await feed.read()
    assert sorted(feed.ids) == ["1", "2", "3"]
    assert feed.lost == []


async def test_plain_and_compressed_copies_are_read_once(feed, eve, rotated, write, compress):
    write(rotated, 1, 2)
    compress(rotated, keep=True)
    eve.touch()
    await feed.read()
    rotated.unlink()
    await feed.read()
    assert feed.ids == ["1", "2"]


async def test_a_compressed_file_is_not_read_again_when_it_is_renamed(
    feed, eve, write, compress, monkeypatch
):
    write(eve.with_name("eve.json.1"), 1)
    compressed = compress(eve.with_name("eve.json.1"))
    eve.touch()
    await feed.read()
    compressed.rename(eve.with_name("eve.json.2.gz"))
    monkeypatch.setattr("tocsin_connectors.siem.files.reader.OpenFile", None)
    await feed.read()
    assert feed.ids == ["1"]


@pytest.mark.parametrize("was_read", [False, True])
async def test_incomplete_compressed_file_is_waited_for(feed, eve, rotated, write, was_read):
    write(eve, *range(500))
    if was_read:
        await feed.read()
    eve.rename(rotated)
    whole = gzip.compress(rotated.read_bytes())
    compressed = eve.with_name("eve.json.1.gz")
    compressed.write_bytes(whole[: len(whole) // 2])
    write(eve, 500)
    await feed.read()
    compressed.write_bytes(whole)
    rotated.unlink()
    await feed.read()
    assert sorted(map(int, feed.ids)) == list(range(501))
    assert feed.lost == []


async def test_a_compressed_file_that_stays_incomplete_is_a_loss(feed, eve, write):
    eve.touch()
    whole = gzip.compress(b"".join(b'{"n":%d}\n' % number for number in range(5000)))
    eve.with_name("eve.json.1.gz").write_bytes(whole[: len(whole) // 2])
    await feed.read()
    assert feed.lost == []
    await feed.read(A_WHILE)
    await feed.read(A_WHILE)
    (lost,) = feed.lost
    assert lost.source.endswith(".gz")
    assert "ended before" in lost.lost
    assert feed.ids == [str(number) for number in range(len(feed.ids))]


async def test_a_damaged_compressed_file_is_a_loss(feed, eve):
    eve.touch()
    eve.with_name("eve.json.1.gz").write_bytes(b"this is no gzip stream")
    await feed.read(A_WHILE)
    assert [lost.start for lost in feed.lost] == [0]


async def test_the_last_line_of_a_compressed_file_needs_no_newline(feed, eve):
    eve.touch()
    eve.with_name("eve.json.1.gz").write_bytes(gzip.compress(b'{"n":1}\n{"n":2}'))
    await feed.read()
    assert feed.ids == ["1", "2"]


async def test_the_last_line_of_a_rotated_file_is_final_after_a_minute(feed, eve, rotated):
    eve.touch()
    rotated.write_text('{"n":1}\n{"n":2}')
    await feed.read()
    assert feed.ids == ["1"]
    await feed.read(A_WHILE)
    assert feed.ids == ["1", "2"]


async def test_incomplete_last_line_of_a_rotated_file_is_quarantined(feed, eve, rotated):
    eve.touch()
    rotated.write_text('{"n":1}\n{"n":')
    await feed.read(A_WHILE)
    assert [rejected.content for rejected in feed.rejected] == [b'{"n":']


async def test_another_file_with_the_same_first_kib_is_a_new_one(feed, eve, rotated, write):
    beginning = '{"n":0,"' + "x" * 2000 + '":0}\n'
    eve.write_text(beginning + '{"n":1}\n')
    await feed.read()
    eve.rename(rotated)
    eve.write_text(beginning + '{"n":2}\n')
    await feed.read()
    assert feed.ids == ["0", "1", "0", "2"]


async def test_a_reused_inode_is_a_new_file(feed, eve, rotated, write, compress):
    write(eve, 1, 2)
    await feed.read()
    shutil.copy(eve, rotated)
    compress(rotated)
    eve.write_text('{"n":3}\n{"n":4}\n{"n":5}\n')  # the same inode
    await feed.read()
    assert feed.ids == ["1", "2", "3", "4", "5"]
    assert feed.lost == []


async def test_a_move_to_another_inode_is_the_same_file(feed, eve, rotated, write):
    write(eve, 1)
    await feed.read()
    write(eve, 2)
    shutil.copy(eve, rotated)
    eve.unlink()
    write(eve, 3)
    await feed.read()
    assert sorted(feed.ids) == ["1", "2", "3"]
    assert feed.lost == []


class TestCopyTruncate:
    """The writer keeps its file; rotation copies and empties it."""

    async def test_the_rest_is_read_from_the_copy(self, feed, eve, rotated, write):
        write(eve, 1)
        await feed.read()
        write(eve, 2)
        shutil.copy(eve, rotated)
        os.truncate(eve, 0)
        write(eve, 3)
        await feed.read()
        assert sorted(feed.ids) == ["1", "2", "3"]
        assert feed.lost == []

    async def test_read_between_copy_and_truncation_duplicates_nothing(
        self, feed, eve, rotated, write
    ):
        write(eve, 1)
        await feed.read()
        write(eve, 2)
        shutil.copy(eve, rotated)
        await feed.read()
        os.truncate(eve, 0)
        write(eve, 3)
        await feed.read()
        assert feed.ids == ["1", "2", "3"]
        assert feed.lost == []

    async def test_incomplete_copy_is_waited_for(self, feed, eve, rotated, write):
        write(eve, *range(500))
        await feed.read()
        rotated.write_bytes(eve.read_bytes()[:3000])
        await feed.read()
        shutil.copy(eve, rotated)
        os.truncate(eve, 0)
        await feed.read(A_WHILE)
        assert len(feed.ids) == 500
        assert feed.lost == []

    async def test_missing_copy_is_reported_as_loss_once(self, feed, eve, write):
        write(eve, 1)
        await feed.read()
        os.truncate(eve, 0)
        write(eve, 2, 3)
        await feed.read()
        await feed.read()
        assert feed.ids == ["1", "2", "3"]
        (lost,) = feed.lost
        assert (lost.source, lost.start, lost.end) == (str(eve), 8, 8)
        assert "truncated" in lost.lost

    async def test_seen_but_unread_bytes_are_reported_as_lost(self, feed, eve, write):
        eve.write_text('{"n":1}\n{"n":')
        await feed.read()
        os.truncate(eve, 0)
        await feed.read()
        assert [(lost.start, lost.end) for lost in feed.lost] == [(8, 13)]


class TestVanished:
    """Files that are gone are forgotten, and what was not read of them is reported once."""

    async def test_unread_bytes_are_lost(self, feed, eve, rotated, write):
        write(eve, 0)
        write(rotated, *range(1, 1500))
        os.utime(rotated, (0, 1))
        feed.position = {"version": 1, "files": []}
        await feed.read(most=1)
        rotated.unlink()
        await feed.read()
        await feed.read()
        (lost,) = feed.lost
        assert (lost.source, "disappeared" in lost.lost) == (str(rotated), True)
        assert lost.start < lost.end
        assert len(feed.ids) == 1001

    async def test_fully_read_file_is_forgotten(self, feed, eve, rotated, write):
        write(eve, 2)
        write(rotated, 1)
        await feed.read()
        rotated.unlink()
        await feed.read()
        assert feed.lost == []
        assert len(feed.position["files"]) == 1

    async def test_nothing_is_forgotten_while_everything_is_missing(self, feed, tmp_path, write):
        write(tmp_path / "eve.json", 1)
        write(tmp_path / "eve.json.1", 2)
        await feed.read()
        tmp_path.rename(away := tmp_path.with_name("unmounted"))
        with pytest.raises(TryLater):
            await feed.read()
        away.rename(tmp_path)
        await feed.read()
        assert sorted(feed.ids) == ["1", "2"]

    async def test_unreadable_copy_is_no_loss(self, feed, eve, rotated, write, no_access):
        write(eve, 1)
        await feed.read()
        write(eve, 2)
        shutil.copy(eve, rotated)
        os.truncate(eve, 0)
        restore = no_access(rotated)
        with pytest.raises(TryLater):
            await feed.read()
        restore()
        await feed.read()
        assert (feed.ids, feed.lost) == (["1", "2"], [])


@pytest.fixture
def meanwhile(monkeypatch):
    """Let something happen between the listing of the files and what follows."""

    def after_finding(happens):
        def find_and_go_on(*what):
            monkeypatch.undo()
            findings = discovery.find_files(*what)
            happens()
            return findings

        monkeypatch.setattr(reader, "find_files", find_and_go_on)

    return after_finding


async def test_rotation_during_a_read_loses_and_duplicates_nothing(
    feed, eve, rotated, write, meanwhile
):
    write(eve, 1)
    await feed.read()
    write(eve, 2)

    def rotate():
        eve.rename(rotated)
        write(eve, 3)

    meanwhile(rotate)
    await feed.read()
    await feed.read()
    assert sorted(feed.ids) == ["1", "2", "3"]


async def test_copy_made_during_a_read_is_recognized_later(feed, eve, rotated, write, meanwhile):
    write(eve, 1)
    await feed.read()

    def copy_and_truncate():
        shutil.copy(eve, rotated)
        os.truncate(eve, 0)

    write(eve, 2)
    meanwhile(copy_and_truncate)
    await feed.read()
    await feed.read()
    assert (sorted(feed.ids), feed.lost) == (["1", "2"], [])


async def test_a_file_that_is_removed_during_a_read_is_no_error(
    feed, eve, rotated, write, meanwhile
):
    write(rotated, 1)
    eve.touch()
    meanwhile(rotated.unlink)
    await feed.read()
    assert feed.ids == []

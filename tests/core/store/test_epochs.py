"""A database that is behind what is known of it is noticed, and issues no number twice."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from incident_rows import add_incidents
from tocsin.errors import OperatorError
from tocsin.events import Notifiers
from tocsin.knowledge import SearchIndexer
from tocsin.knowledge.graph.statistics import count_graph
from tocsin.knowledge.search.indexer import count_unindexed
from tocsin.store import (
    INCIDENT_NUMBER,
    JUMP,
    DatabaseReplaced,
    Head,
    HeadFile,
    begin_epoch,
    find_rollback,
    load_epochs,
    load_head,
    settle_heads,
)

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
ELSEWHERE = Head(epoch=4, epoch_id="of another one", incident_number=7, incident_change=900)


async def test_a_database_is_behind_a_head_with_higher_numbers_alone(database):
    await database.write(add_incidents, 5)
    head = await database.read(load_head)
    assert (head.epoch, head.incident_number, head.incident_change) == (1, 5, 5)
    await database.write(add_incidents)
    assert await database.read(find_rollback, head) is None
    for known in (replace(head, incident_number=7), replace(head, incident_change=7)):
        rollback = await database.read(find_rollback, known)
        assert not rollback.is_other
        assert "found epoch 1, incident 6 (change 6)" in str(rollback)
    assert (await database.read(find_rollback, ELSEWHERE)).is_other


async def test_a_new_epoch_begins_above_all_numbers_and_knows_those_before(database):
    await database.write(add_incidents, 5)
    before = await database.read(load_head)
    known = replace(before, incident_number=8, incident_change=20)
    [rollback] = await database.write(settle_heads, [known], NOW)
    assert await database.write(settle_heads, [known, before], NOW) == []
    assert await database.write(add_incidents) == [8 + JUMP + 1]
    head = await database.read(load_head)
    assert (head.epoch, head.incident_change) == (2, 20 + JUMP + 1)
    first, second = await database.read(load_epochs)
    assert (first.id, first.reason, second.reason) == (before.epoch_id, None, str(rollback))
    assert (second.found_number, second.known_number, second.started_at) == (5, 8, NOW)
    reaching = replace(before, incident_number=second.first_number)
    assert await database.read(find_rollback, reaching) is not None


async def test_of_two_nodes_with_different_heads_one_begins_the_epoch(database):
    await database.write(add_incidents, 5)
    head = await database.read(load_head)
    for number, begun in ((300, 1), (200, 0)):
        known = replace(head, incident_number=number)
        assert len(await database.write(settle_heads, [known], NOW)) == begun
    assert len(await database.read(load_epochs)) == 2


async def test_a_database_in_place_of_another_goes_on_above_its_numbers(database):
    await database.write(settle_heads, [ELSEWHERE], NOW)
    assert await database.write(settle_heads, [ELSEWHERE], NOW) == []
    assert (await database.read(load_head)).epoch == 5
    assert await database.write(add_incidents) == [ELSEWHERE.incident_number + JUMP + 1]


async def test_a_number_that_is_known_to_be_issued_is_not_issued_again(database):
    assert await database.write(add_incidents, 5) == [1, 2, 3, 4, 5]
    database.floors[INCIDENT_NUMBER] = 6
    with pytest.raises(DatabaseReplaced, match="incident_number 6 had been issued"):
        await database.write(add_incidents)
    database.floors[INCIDENT_NUMBER] = 5
    assert await database.write(add_incidents) == [6]


async def test_numbers_that_were_left_out_count_nowhere(database, clock):
    await database.write(add_incidents, 5)
    await database.write(begin_epoch, await database.read(load_head), "restored", NOW)
    await database.write(add_incidents, 2)
    assert (await database.read(count_graph)).nodes["incident"].value == 7
    assert await SearchIndexer(database, clock, Notifiers()).catch_up() == 7
    assert await database.read(count_unindexed) == 0
    await database.write(begin_epoch, await database.read(load_head), "restored", NOW)
    await SearchIndexer(database, clock, Notifiers()).catch_up()
    assert await database.read(count_unindexed) == 0


async def test_the_file_keeps_the_head_of_each_database(database, tmp_path):
    history, head = await database.read(load_epochs), await database.read(load_head)
    here, there = (HeadFile(tmp_path / "data", place) for place in ("here", "there"))
    assert here.load(history) == []
    other = [replace(history[0], id=ELSEWHERE.epoch_id)]
    there.save(ELSEWHERE, other, NOW)
    here.save(replace(head, incident_number=1), history, NOW)
    here.save(head, history, NOW)
    assert [stored.head for stored in here.load(history)] == [head]
    assert [stored.head for stored in HeadFile(tmp_path / "data", "moved").load(history)] == [head]
    assert [stored.head for stored in there.load(other)] == [ELSEWHERE]
    # a database that was made in place of another is behind the other's head
    assert [stored.head for stored in there.load([])] == [ELSEWHERE]
    assert list_names(tmp_path / "data") == ["head.json"]
    assert here.path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("content", ["", "{}", '{"databases": [{}]}', "[1", '{"databases": 3}'])
async def test_a_damaged_file_is_named(database, tmp_path, content):
    file = HeadFile(tmp_path, "here")
    file.path.write_text(content)
    with pytest.raises(OperatorError, match=r"head\.json: cannot be read"):
        file.load(await database.read(load_epochs))


def list_names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]

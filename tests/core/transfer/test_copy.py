"""A database is copied to one of the other kind, and the copy goes on as the same database."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest
from sqlalchemy import URL

from incident_rows import add_incidents
from tocsin import audit
from tocsin.errors import OperatorError
from tocsin.events import Notifiers
from tocsin.knowledge import SearchIndexer
from tocsin.store import check_schema, load_head, open_database
from tocsin.transfer import DatabaseCopy, copy
from tocsin.transfer.rows import RowWriter

from .conftest import NOW, count_rows, fill, opened


class Interrupted(Exception):  # noqa: N818 - no mistake
    """The copy ends here."""


def make_copy(source, target, progress=lambda *_: None) -> DatabaseCopy:
    return DatabaseCopy(source=source, target=target, actor="ana", now=NOW, progress=progress)


async def test_an_interrupted_copy_is_finished_and_has_everything(
    database, target_url, monkeypatch, clock
):
    monkeypatch.setattr(copy, "_BATCH", 2)
    await database.write(fill)
    await audit.Sealer(database, b"key", SimpleNamespace(now=lambda: NOW)).seal()
    before = await database.read(count_rows)

    def interrupt(table: str, rows: int, _total: int) -> None:
        if (table, rows) == ("incidents", 2):
            raise Interrupted

    async with opened(target_url) as target:
        with pytest.raises(Interrupted):
            await make_copy(database, target, interrupt).run()
        with pytest.raises(OperatorError, match="unfinished copy"):
            await check_schema(target)
        copied: list[tuple[str, int]] = []
        rows = await make_copy(
            database, target, lambda table, rows, _total: copied.append((table, rows))
        ).run()
        assert ("incidents", 0) not in copied
        assert rows == sum(before.values())
        assert await target.read(count_rows) == before | {"audit": before["audit"] + 1}
        assert await target.read(load_head) == await database.read(load_head)
        assert (await target.read(audit.verify, b"key", now=NOW)).problems == []
        assert await target.write(add_incidents, 2) == [4, 5]
        assert await SearchIndexer(target, clock, Notifiers()).catch_up() == 5
        await check_schema(target)
        with pytest.raises(OperatorError, match="not empty"):
            await make_copy(database, target).run()


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
async def test_a_database_that_a_node_uses_is_not_copied(database, tmp_path, database_url):
    other = open_database(database_url)
    node = asyncio.create_task(other.attend(7, lambda _: None))
    url = URL.create("sqlite", database=str(tmp_path / "target.db"))
    async with asyncio.timeout(20), opened(url) as target:
        while not await database.read(copy.is_in_use):  # noqa: ASYNC110 - asks a database
            await asyncio.sleep(0.01)
        with pytest.raises(OperatorError, match="stop all nodes"):
            await make_copy(database, target).run()
    node.cancel()
    await asyncio.gather(node, return_exceptions=True)
    await other.close()


@pytest.mark.full
async def test_a_copy_that_differs_is_refused(database, target_url, monkeypatch):
    await database.write(fill)
    write = RowWriter.write

    def lose_one(self: RowWriter, rows: list) -> None:
        write(self, rows[:-1] if self.layout.name == "incident_entities" else rows)

    monkeypatch.setattr(RowWriter, "write", lose_one)
    async with opened(target_url) as target:
        with pytest.raises(OperatorError, match="incident_entities has 5 rows"):
            await make_copy(database, target).run()

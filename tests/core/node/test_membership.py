"""Membership of a node in the cluster."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from sqlalchemy import URL

from tocsin.node import open_node
from tocsin.settings import Settings

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


async def test_a_node_leaves_also_if_its_connection_fails_as_it_is_cancelled(
    tmp_path: Path, migrated_url: URL, monkeypatch
):
    (plugins_file := tmp_path / "plugins.toml").touch()
    settings = Settings(
        data_dir=tmp_path / "data",
        database_url=migrated_url.render_as_string(hide_password=False),
        plugins_file=plugins_file,
        encryption_key="A" * 43 + "=",
    )
    entered = asyncio.Event()

    async def attend_until_cancelled(*_) -> None:
        if entered.is_set():
            await asyncio.sleep(60)
        entered.set()
        try:
            await asyncio.sleep(60)
        finally:
            raise ConnectionError("the connection could not be closed")

    async with open_node(settings) as node:
        monkeypatch.setattr(node.database, "attend", attend_until_cancelled)
        membership = asyncio.create_task(node._join_cluster())
        await entered.wait()
        membership.cancel()
        await asyncio.wait([membership], timeout=5)
        assert membership.done()
        await asyncio.gather(membership, return_exceptions=True)

"""Servers and a folder for services whose intake is NATS."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from nats_servers import NatsServer, run_cluster


@pytest.fixture
async def servers(tmp_path) -> AsyncIterator[list[NatsServer]]:
    """The servers of a cluster."""
    async with run_cluster(tmp_path / "nats") as servers:
        yield servers


@pytest.fixture
def folder(tmp_path) -> Path:
    """The data folder of a service."""
    (folder := tmp_path / "tocsin").mkdir()
    return folder

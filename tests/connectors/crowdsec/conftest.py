"""Fixtures for the tests of CrowdSec."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from crowdsec_server import LocalApi


@pytest.fixture
async def local_api(tmp_path: Path) -> AsyncIterator[LocalApi]:
    async with LocalApi(tmp_path / "crowdsec") as local_api:
        yield local_api

"""A running API, and commands that are run as an operator runs them."""

from __future__ import annotations

import os

import pytest

from api_server import Api, api
from command_fixtures import on_database, tocsin

__all__ = ["api", "on_database", "tocsin"]


@pytest.fixture
async def admin_terminal(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """The variables of an admin's terminal."""
    for name in [name for name in os.environ if name.startswith("TOCSIN_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("TOCSIN_URL", str(api.client.make_url("/")))
    monkeypatch.setenv("TOCSIN_ADMIN_TOKEN", await api.token())

"""A running API, and commands that are run as an operator runs them."""

from __future__ import annotations

from api_server import api
from command_fixtures import on_database, tocsin

__all__ = ["api", "on_database", "tocsin"]

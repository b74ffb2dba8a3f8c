"""An empty graph."""

from __future__ import annotations

import pytest

from graph_rows import Graph
from tocsin.store import Database


@pytest.fixture
def graph(database: Database) -> Graph:
    return Graph(database)

from __future__ import annotations

import pytest

from schedule_harness import Office


@pytest.fixture
def office(database, clock) -> Office:
    return Office(database, clock)

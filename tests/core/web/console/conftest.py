from __future__ import annotations

import pytest

from console import Person


@pytest.fixture
async def person(api) -> Person:
    """An admin who has signed in."""
    person = Person(api)
    await person.sign_in()
    return person


@pytest.fixture
async def viewer(api) -> Person:
    """Somebody who may look at everything and change nothing."""
    person = Person(api)
    await person.sign_in("viewer")
    return person

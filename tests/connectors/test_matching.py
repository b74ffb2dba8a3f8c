"""Whether what came has what was asked for."""

from __future__ import annotations

from tocsin import Entity, EntityKind
from tocsin_connectors.siem.entities import contains_entity


def test_capitals_make_no_difference_and_kinds_do():
    asked = Entity(EntityKind.USER, "EXAMPLE\\ann")
    assert contains_entity(
        asked, [Entity(EntityKind.IP, "::1"), Entity(EntityKind.USER, "example\\Ann")]
    )
    assert not contains_entity(asked, [Entity(EntityKind.PROCESS, "EXAMPLE\\ann")])
    assert not contains_entity(asked, [])

"""Whether what came has what was asked for."""

from __future__ import annotations

from tocsin import Entity, EntityKind
from tocsin_connectors.siem.matching import is_named


def test_capitals_make_no_difference_and_kinds_do():
    asked = Entity(EntityKind.USER, "EXAMPLE\\ann")
    assert is_named(asked, [Entity(EntityKind.IP, "::1"), Entity(EntityKind.USER, "example\\Ann")])
    assert not is_named(asked, [Entity(EntityKind.PROCESS, "EXAMPLE\\ann")])
    assert not is_named(asked, [])

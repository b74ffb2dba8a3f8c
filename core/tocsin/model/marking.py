"""Sharing markings: Traffic Light Protocol and Permissible Actions Protocol."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tocsin.model.vocabulary import Vocabulary


class Tlp(Vocabulary):
    """Traffic Light Protocol 2.0 (FIRST), which limits the sharing of data.

    The least restrictive marking comes first.
    """

    CLEAR = "clear"
    GREEN = "green"
    AMBER = "amber"
    AMBER_STRICT = "amber+strict"
    RED = "red"

    @property
    def rank(self) -> int:
        """The strictness, from 0 for clear to 4 for red."""
        return list(Tlp).index(self)


class Pap(Vocabulary):
    """Permissible Actions Protocol, which limits actions.

    The least restrictive marking comes first. Red allows only actions that outsiders cannot see.
    Amber also allows lookups in data that third parties already have. Green also allows actions
    that the adversary can notice. Clear allows any action.
    """

    CLEAR = "clear"
    GREEN = "green"
    AMBER = "amber"
    RED = "red"

    @property
    def rank(self) -> int:
        """The strictness, from 0 for clear to 3 for red."""
        return list(Pap).index(self)


@dataclass(frozen=True, slots=True)
class Marking:
    """A TLP and a PAP marking."""

    tlp: Tlp = Tlp.AMBER
    pap: Pap = Pap.AMBER

    @classmethod
    def strictest(cls, markings: Iterable[Marking]) -> Marking:
        """Return the strictest TLP and PAP of these markings; amber for both if there are none."""
        every = list(markings) or [cls()]
        tlp = max((marking.tlp for marking in every), key=lambda tlp: tlp.rank)
        return cls(tlp, max((marking.pap for marking in every), key=lambda pap: pap.rank))


def find_marking(provider: str, markings: Mapping[str, Marking]) -> Marking:
    """Return the marking of a provider's data.

    Red for both if the provider is no longer configured, because its marking is unknown.
    """
    return markings.get(provider, Marking(Tlp.RED, Pap.RED))

"""Sharing markings: Traffic Light Protocol and Permissible Actions Protocol."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tocsin.model.vocabulary import Vocabulary


class Tlp(Vocabulary):
    """With whom something may be shared: the Traffic Light Protocol 2.0 of FIRST, widest first."""

    CLEAR = "clear"
    GREEN = "green"
    AMBER = "amber"
    AMBER_STRICT = "amber+strict"
    RED = "red"

    @property
    def rank(self) -> int:
        """0 for clear to 4 for red."""
        return list(Tlp).index(self)


class Pap(Vocabulary):
    """What may be done with something: the Permissible Actions Protocol, freest first.

    Red: nothing that can be seen outside. Amber: asking third parties that hold data of their own.
    Green: also what the other side may notice. Clear: anything.
    """

    CLEAR = "clear"
    GREEN = "green"
    AMBER = "amber"
    RED = "red"

    @property
    def rank(self) -> int:
        """0 for clear to 3 for red."""
        return list(Pap).index(self)


@dataclass(frozen=True, slots=True)
class Marking:
    """How something is marked, in both respects."""

    tlp: Tlp = Tlp.AMBER
    pap: Pap = Pap.AMBER

    @classmethod
    def strictest(cls, markings: Iterable[Marking]) -> Marking:
        """Return the strictest of each respect; amber where there is none."""
        every = list(markings) or [cls()]
        tlp = max((marking.tlp for marking in every), key=lambda tlp: tlp.rank)
        return cls(tlp, max((marking.pap for marking in every), key=lambda pap: pap.rank))


def find_marking(provider: str, markings: Mapping[str, Marking]) -> Marking:
    """Return how what came from a provider is marked.

    Red in both respects where the provider is not configured any more: nobody says how it was.
    """
    return markings.get(provider, Marking(Tlp.RED, Pap.RED))

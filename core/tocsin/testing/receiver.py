"""Loopback simulator of a receiver that keeps objects."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar

from aiohttp import web

from tocsin.clock import Clock
from tocsin.testing.faults import Fault
from tocsin.testing.vendor_api import VendorApi


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteObject:
    """An object at the receiver's, in nobody's shape."""

    id: str
    """What a receipt calls it."""
    observables: Sequence[str] = ()
    """The values of its observables; a value that it has twice is in it twice."""
    notes: Sequence[str] = ()
    is_open: bool = True


class ReceiverSimulator(VendorApi):
    """The API of one receiver; `async with` serves it, at `url`."""

    search_delay: ClassVar[timedelta] = timedelta(0)
    """How long its search does not find what was just made; `is_searchable` says so."""
    _reason = "message"

    def __init__(self, clock: Clock, *, port: int = 0) -> None:
        """Begin without any object, at a port that is free unless one is given."""
        super().__init__(clock, port=port)
        self.lacks: set[str] = set()
        """Permissions that whoever asks does not have, by the vendor's names."""
        self._faults: dict[int, Fault] = {}

    # what a vendor's simulator says

    @abstractmethod
    def objects(self) -> Sequence[RemoteObject]:
        """Return the objects that there are, in the order in which they were made."""

    @abstractmethod
    def remove(self, identifier: str) -> None:
        """Remove an object, as a person there would."""

    # what its handlers use

    def next_number(self) -> int:
        """Return a number that nothing has yet."""
        return next(self._numbers)

    def is_searchable(self, made_at: Any) -> bool:
        """Return whether the search finds what was made then."""
        return bool(self.clock.now() - made_at >= self.search_delay)

    # what a test uses

    def fail(self, fault: Fault, *, after: int = 0) -> None:
        """Have a request go wrong: the next, or the one after so many more."""
        self._faults[len(self.requests) + after] = fault

    def heal(self) -> None:
        """Have nothing go wrong any more that has not yet."""
        self._faults.clear()

    def _fault_of(self, _: web.Request) -> Fault | None:
        return self._faults.pop(len(self.requests), None)

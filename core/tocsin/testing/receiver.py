"""Loopback simulator of a receiver that keeps objects.

Derive from `ReceiverSimulator` and add only the vendor's part: routes, sign-in, and objects.
"""

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
    """An object in the receiver, in a vendor-neutral form."""

    id: str
    """The ID that receipts contain as `remote_id`."""
    observables: Sequence[str] = ()
    """The values of the observables. If a value was added twice, the list contains it twice."""
    notes: Sequence[str] = ()
    is_open: bool = True


class ReceiverSimulator(VendorApi):
    """A simulated receiver; `async with` serves its API at `url`."""

    search_delay: ClassVar[timedelta] = timedelta(0)
    """How long it takes until a search finds a new object; see `is_searchable`."""
    _reason = "message"

    def __init__(self, clock: Clock, *, port: int = 0) -> None:
        """Start without objects; `port` 0 selects a free port."""
        super().__init__(clock, port=port)
        self.lacks: set[str] = set()
        """Permissions that the client does not have, by the vendor's names."""
        self._faults: dict[int, Fault] = {}

    # implemented by a vendor's simulator

    @abstractmethod
    def objects(self) -> Sequence[RemoteObject]:
        """Return the objects in the order in which they were created."""

    @abstractmethod
    def remove(self, identifier: str) -> None:
        """Remove an object, as if a person had deleted it."""

    # used by its handlers

    def next_number(self) -> int:
        """Return an unused number."""
        return next(self._numbers)

    def is_searchable(self, made_at: Any) -> bool:
        """Return whether a search would already find an object that was created at `made_at`."""
        return bool(self.clock.now() - made_at >= self.search_delay)

    # used by tests

    def fail(self, fault: Fault, *, after: int = 0) -> None:
        """Skip `after` requests, then make the next one fail."""
        self._faults[len(self.requests) + after] = fault

    def heal(self) -> None:
        """Remove the faults that have not occurred yet."""
        self._faults.clear()

    def _select_fault(self, _: web.Request) -> Fault | None:
        return self._faults.pop(len(self.requests), None)

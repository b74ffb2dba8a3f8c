"""Lookups of the numbers that each IRIS installation gives to names."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from enum import Enum

from tocsin import Broken, Json, Misconfigured

Ask = Callable[[str, str], Awaitable[Json]]


class LookupKind(Enum):
    """Kinds of numbered objects: the list's path, and the members with the number and name."""

    SEVERITY = ("/manage/severities/list", "severity_id", "severity_name")
    STATUS = ("/manage/alert-status/list", "status_id", "status_name")
    IOC_TYPE = ("/manage/ioc-types/list", "type_id", "type_name")
    TLP = ("/manage/tlp/list", "tlp_id", "tlp_name")
    CUSTOMER = ("/manage/customers/list", "customer_id", "customer_name")

    @property
    def label(self) -> str:
        """Display name."""
        return {"IOC_TYPE": "IOC type", "TLP": "TLP"}.get(self.name, self.name.lower())


class NumberLookup:
    """Cached numbers of names."""

    def __init__(self, ask: Ask) -> None:
        """Store the request function."""
        self._ask = ask
        self._known: dict[LookupKind, Mapping[str, int]] = {}

    async def find(self, kind: LookupKind, name: str) -> int | None:
        """Return the number of a name, ignoring case, or None."""
        if name.casefold() not in self._known.get(kind, {}):
            self._known[kind] = await self._read(kind)
        return self._known[kind].get(name.casefold())

    async def number(self, kind: LookupKind, name: str) -> int:
        """Return the number of a name. Raises `Misconfigured` if there is none."""
        found = await self.find(kind, name)
        if found is None:
            raise Misconfigured(f"the {kind.label} {name!r} does not exist in IRIS")
        return found

    async def customer(self, customer: int | str) -> int:
        """Return the number of a customer, given by name or number."""
        if isinstance(customer, int):
            return customer
        return await self.number(LookupKind.CUSTOMER, customer)

    async def has_customer(self, customer: int | str) -> bool:
        """Return whether the customer is visible to the user."""
        if isinstance(customer, int):
            return customer in (await self._read(LookupKind.CUSTOMER)).values()
        return await self.find(LookupKind.CUSTOMER, customer) is not None

    async def _read(self, kind: LookupKind) -> Mapping[str, int]:
        path, number, name = kind.value
        found = await self._ask("GET", path)
        if not isinstance(found, list):
            raise Broken(f"IRIS did not return a list for {path}")
        listed = [
            item for item in found if isinstance(item, dict) and isinstance(item.get(number), int)
        ]
        return {str(record.get(name)).casefold(): record[number] for record in listed}

"""Lookups of the numbers that each IRIS installation gives to names."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from enum import Enum

from tocsin import Broken, Json, Misconfigured

Ask = Callable[[str, str], Awaitable[Json]]


class LookupKind(Enum):
    """What has numbers: where it is listed, and the members of its number and its name."""

    SEVERITY = ("/manage/severities/list", "severity_id", "severity_name")
    STATUS = ("/manage/alert-status/list", "status_id", "status_name")
    IOC_TYPE = ("/manage/ioc-types/list", "type_id", "type_name")
    TLP = ("/manage/tlp/list", "tlp_id", "tlp_name")
    CUSTOMER = ("/manage/customers/list", "customer_id", "customer_name")

    @property
    def label(self) -> str:
        """What people call it."""
        return {"IOC_TYPE": "IOC type", "TLP": "TLP"}.get(self.name, self.name.lower())


class NumberLookup:
    """The numbers of names, remembered once they are known."""

    def __init__(self, ask: Ask) -> None:
        """Take what asks IRIS."""
        self._ask = ask
        self._known: dict[LookupKind, Mapping[str, int]] = {}

    async def find(self, kind: LookupKind, name: str) -> int | None:
        """Return the number of a name in any case, None where there is none."""
        if name.casefold() not in self._known.get(kind, {}):
            self._known[kind] = await self._read(kind)
        return self._known[kind].get(name.casefold())

    async def number(self, kind: LookupKind, name: str) -> int:
        """Return the number of a name; raises `Misconfigured` where there is none."""
        found = await self.find(kind, name)
        if found is None:
            raise Misconfigured(f"IRIS has no {kind.label} {name!r}")
        return found

    async def customer(self, customer: int | str) -> int:
        """Return the number of a customer that is named, or numbered already."""
        if isinstance(customer, int):
            return customer
        return await self.number(LookupKind.CUSTOMER, customer)

    async def has_customer(self, customer: int | str) -> bool:
        """Return whether the user may see this customer."""
        if isinstance(customer, int):
            return customer in (await self._read(LookupKind.CUSTOMER)).values()
        return await self.find(LookupKind.CUSTOMER, customer) is not None

    async def _read(self, kind: LookupKind) -> Mapping[str, int]:
        path, number, name = kind.value
        found = await self._ask("GET", path)
        if not isinstance(found, list):
            raise Broken(f"IRIS answered something else than a list to {path}")
        listed = [it for it in found if isinstance(it, dict) and isinstance(it.get(number), int)]
        return {str(it.get(name)).casefold(): it[number] for it in listed}

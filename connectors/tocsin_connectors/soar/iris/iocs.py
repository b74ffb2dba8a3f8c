"""Observables as the IOCs of an alert."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tocsin import EntityKind, Observable
from tocsin_connectors.soar.iris.lookups import LookupKind, NumberLookup

_IOC_TYPES = {
    EntityKind.IP: "ip-any",
    EntityKind.DOMAIN: "domain",
    EntityKind.URL: "url",
    EntityKind.EMAIL: "email",
    EntityKind.MAILBOX: "email",
    EntityKind.USER: "account",
    EntityKind.HOST: "hostname",
    EntityKind.FILE: "filename",
    EntityKind.CVE: "vulnerability",
}
_HASH_TYPES = {32: "md5", 40: "sha1", 64: "sha256", 128: "sha512"}
OTHER = "other"
"""IOC type for values that do not fit another type in IRIS."""
_KEPT_MEMBERS = ("ioc_id", "ioc_value", "ioc_type_id", "ioc_tlp_id")


def get_ioc_type(observable: Observable) -> str:
    """Return the built-in IRIS type of an observable."""
    if observable.kind is EntityKind.FILE_HASH:
        return _HASH_TYPES.get(len(observable.value), OTHER)
    return _IOC_TYPES.get(observable.kind, OTHER)


async def build_iocs(
    observables: Sequence[Observable], names: NumberLookup, tlp: str, *, typed: bool = True
) -> list[dict[str, Any]]:
    """Return new IOCs; unless `typed`, all have the type `other`."""
    if not observables:
        return []
    other, tlp_id = (
        await names.number(LookupKind.IOC_TYPE, OTHER),
        await names.number(LookupKind.TLP, tlp),
    )
    types = {get_ioc_type(observable) for observable in observables} if typed else ()
    numbers = {type_: await names.find(LookupKind.IOC_TYPE, type_) or other for type_ in types}
    return [
        {
            "ioc_value": observable.value,
            "ioc_type_id": numbers.get(get_ioc_type(observable), other),
            "ioc_tlp_id": tlp_id,
            "ioc_description": observable.kind.value,
        }
        for observable in observables
    ]


def select_kept(ioc: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of an unchanged IOC that an update repeats."""
    return {name: ioc[name] for name in _KEPT_MEMBERS if ioc.get(name) is not None}


def list_values(alert: Mapping[str, Any]) -> set[str]:
    """Return the values of an alert's IOCs."""
    return {str(ioc.get("ioc_value")) for ioc in alert.get("iocs") or ()}

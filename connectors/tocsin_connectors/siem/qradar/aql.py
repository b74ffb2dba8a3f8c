"""Queries in AQL.

A query never contains a value from outside unchanged. IBM does not document how to escape quotation
marks in AQL, so characters that might need escaping are replaced: in texts, all characters except
plain ones become `%`, the wildcard of `ILIKE`. The query then finds the value and sometimes other
values, which callers have to filter out.

https://www.ibm.com/docs/en/qsip/7.5?topic=aql-event-flow-simarc-fields-queries
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from ipaddress import ip_address

from tocsin import Entity, EntityKind, Refused, Window
from tocsin_connectors.siem.qradar.values import to_milliseconds

ADDRESS_FIELDS: Mapping[int, tuple[str, ...]] = {
    4: ("sourceip", "destinationip", "identityip"),
    6: ("sourcev6", "destinationv6"),
}
"""Fields that hold an address, by IP version."""
ENTITY_FIELDS: Mapping[EntityKind, tuple[str, ...]] = {
    EntityKind.USER: ("username",),
    EntityKind.HOST: ("identityhostname",),
}
"""Fields of every event that hold an entity, by kind."""
_COLUMNS = (
    *("starttime", "devicetime", "qid", "QIDNAME(qid) AS event_name"),
    *("CATEGORYNAME(category) AS category_name", "LOGSOURCENAME(logsourceid) AS log_source"),
    *("sourceip", "sourceport", "destinationip", "destinationport", "sourcev6", "destinationv6"),
    *("PROTOCOLNAME(protocolid) AS protocol", "username", "identityip", "identityhostname"),
    *("eventcount", "magnitude", "UTF8(payload) AS payload"),
)
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9 .:@/-]+")
_MARGIN = timedelta(minutes=5)
"""Margin between the window and START and STOP, which are rounded to minutes."""


def build_pattern(value: str) -> str:
    """Return the `ILIKE` pattern for a text: `'O%Brien'` for O'Brien.

    It may match other texts, too. Raises `Refused` for a text without any ASCII letter or digit,
    which would match everything.
    """
    plain = _NOT_PLAIN.sub("%", value)
    if not any(character.isalnum() for character in plain):
        raise Refused(f"{value!r:.60} has no letter or digit that Ariel can search for")
    return f"'{plain}'"


def quote_address(address: str) -> str:
    """Quote an IP address. Raises ValueError if it is invalid."""
    return f"'{ip_address(address)}'"


def quote_column(name: str) -> str:
    """Quote a custom property. Raises ValueError for a name with a quotation mark."""
    if '"' in name:
        raise ValueError(f"{name!r} cannot be quoted")
    return f'"{name}"'


def build_entity_query(
    entity: Entity, properties: Sequence[str], every: Iterable[str], window: Window, limit: int
) -> str:
    """Return the query for the latest events of a window that name an entity.

    `properties` are the custom properties to search, `every` those to return. Raises `Refused` as
    `build_pattern` does, and ValueError if no field can be searched.
    """
    found = [
        *_build_address_conditions(entity),
        *(
            f"{name} ILIKE {build_pattern(entity.value)}"
            for name in ENTITY_FIELDS.get(entity.kind, ())
        ),
        *(
            f"{quote_column(property_)} ILIKE {build_pattern(entity.value)}"
            for property_ in properties
        ),
    ]
    if not found:
        raise ValueError(f"events have no field for the entity kind {entity.kind}")
    columns = ", ".join((*_COLUMNS, *dict.fromkeys(map(quote_column, every))))
    bounds = (window.start, window.end, window.start - _MARGIN, window.end + _MARGIN)
    first, end, start, stop = map(to_milliseconds, bounds)
    clauses = (
        f"SELECT {columns} FROM events",  # noqa: S608 - no value stands in it as it came
        f"WHERE ({' OR '.join(found)}) AND starttime >= {first} AND starttime < {end}",
        f"ORDER BY starttime DESC LIMIT {limit} START {start} STOP {stop}",
    )
    return " ".join(clauses)


def build_empty_query(now: Window, every: Iterable[str]) -> str:
    """Return a query without results that tests the permission and the custom properties."""
    start, end = to_milliseconds(now.start), to_milliseconds(now.end)
    columns = ", ".join(("starttime", *dict.fromkeys(map(quote_column, every))))
    found = f"SELECT {columns} FROM events WHERE starttime < 0 LIMIT 1"  # noqa: S608 - all quoted
    return f"{found} START {start} STOP {end}"


def _build_address_conditions(entity: Entity) -> list[str]:
    if entity.kind is not EntityKind.IP:
        return []
    try:
        version = ip_address(entity.value).version
    except ValueError:
        return []
    return [f"{field} = {quote_address(entity.value)}" for field in ADDRESS_FIELDS[version]]

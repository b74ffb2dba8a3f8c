"""Lists as SQL parameters, so that one statement serves lists of any length."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson
from sqlalchemy import CTE, BigInteger, Text, bindparam, cast, func, select
from sqlalchemy.dialects.postgresql import JSONB

from tocsin.model import Entity, Node, NodeKind
from tocsin.store import clean_text

MAX_VALUE = 2048
_HIGHEST = 2**63 - 1


def parse_incident_number(node: Node) -> int | None:
    """Return the number of an incident; None for any other node and for an invalid number."""
    if node.kind != NodeKind.INCIDENT or not (node.value.isascii() and node.value.isdecimal()):
        return None
    number = int(node.value)
    return number if number <= _HIGHEST else None


def select_list(dialect: str, name: str) -> CTE:
    """Return the parameter `name`, which `encode_list` makes, as rows.

    Their columns are kind, value, number (of an incident, else null) and place (from 0).
    """
    if dialect == "sqlite":
        each = func.json_each(bindparam(name, type_=Text)).table_valued("key", "value")
        part: Any = [func.json_extract(each.c.value, f"$[{at}]") for at in range(3)]
        place: Any = each.c.key
    else:
        items = func.jsonb_array_elements(cast(bindparam(name, type_=Text), JSONB))
        each = items.table_valued("value", with_ordinality="place").render_derived()
        part = [cast(each.c.value, JSONB)[at].astext for at in range(3)]
        place = each.c.place - 1
    columns = (
        cast(part[0], Text).label("kind"),
        cast(part[1], Text).label("value"),
        cast(part[2], BigInteger).label("number"),
        cast(place, BigInteger).label("place"),
    )
    return select(*columns).cte(name).prefix_with("MATERIALIZED")


def encode_list(items: Iterable[Node | Entity]) -> str:
    """Return nodes or entities as `select_list` takes them."""
    return orjson.dumps([_parts(item) for item in items]).decode()


def _parts(item: Node | Entity) -> tuple[str, str, int | None]:
    number = parse_incident_number(item) if isinstance(item, Node) else None
    return str(item.kind), clean_text(item.value, MAX_VALUE), number

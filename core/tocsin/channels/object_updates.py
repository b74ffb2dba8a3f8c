"""Changes that a delivery made to objects, and the receipt that lists them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from http import HTTPStatus

import orjson

from tocsin.model import Receipt


@dataclass(slots=True)
class ObjectUpdate:
    """Changes that a delivery made to one object."""

    id: str
    made: bool = False
    observables: int = 0
    """How many observables the delivery added."""
    noted: bool = False
    closed: bool = False
    may_be_closed: bool = False
    """Whether an interrupted attempt may have closed the object."""


def build_receipt(done: Iterable[ObjectUpdate], status: HTTPStatus) -> Receipt:
    """Return the receipt of a delivery that changed these objects."""
    shown = [asdict(update) for update in done]
    closed = tuple(each["id"] for each in shown if each.pop("may_be_closed") or each["closed"])
    return Receipt(status=status, response=orjson.dumps({"objects": shown}), closed=closed)


def list_updated_objects(response: bytes) -> Mapping[str, bool]:
    """Return the IDs of the objects in a receipt, and whether the delivery closed each of them.

    Empty if `build_receipt` did not create the response, or if the stored response was truncated.
    """
    try:
        objects = orjson.loads(response)["objects"]
        return {str(each["id"]): each["closed"] is True for each in objects}
    except (ValueError, TypeError, KeyError):
        return {}

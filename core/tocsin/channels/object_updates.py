"""Changes that a delivery made to objects, and their receipt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from http import HTTPStatus

import orjson

from tocsin.model import Receipt


@dataclass(slots=True)
class ObjectUpdate:
    """Changes that a delivery made to one object, for the receipt."""

    id: str
    made: bool = False
    observables: int = 0
    """Number of observables that were added."""
    noted: bool = False
    closed: bool = False
    may_be_closed: bool = False
    """Whether an interrupted attempt may have closed it."""


def build_receipt(done: Iterable[ObjectUpdate], status: HTTPStatus) -> Receipt:
    """Return the receipt of a delivery that changed these objects."""
    shown = [asdict(update) for update in done]
    closed = tuple(each["id"] for each in shown if each.pop("may_be_closed") or each["closed"])
    return Receipt(status=status, response=orjson.dumps({"objects": shown}), closed=closed)


def list_updated_objects(response: bytes) -> Mapping[str, bool]:
    """Return the IDs of the objects in a receipt, each with whether the delivery closed it.

    Empty for a response that is not of `build_receipt`, or that was truncated when stored.
    """
    try:
        objects = orjson.loads(response)["objects"]
        return {str(each["id"]): each["closed"] is True for each in objects}
    except (ValueError, TypeError, KeyError):
        return {}

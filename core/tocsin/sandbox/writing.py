"""Templates whose expressions are written as JSON, each value in its place and once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import orjson

from tocsin.sandbox.allowance import spend
from tocsin.sandbox.environment import BoundedEnvironment


class RenderedText(str):
    """What a template has rendered already: the result of a macro, a block or a block `set`."""

    __slots__ = ()


class WritingEnvironment(BoundedEnvironment):
    """Tells what a template has rendered already from the values that it is given."""

    # Jinja joins with this whatever a template renders into a value of its own
    @staticmethod
    def concat(parts: Iterable[str]) -> str:
        """Return the parts as one that is not written again."""
        return RenderedText(BoundedEnvironment.concat(parts))


def write_json(value: Any, default: Callable[[Any], Any]) -> str:
    """Return the value as JSON, what is written already as it is; `default` as in orjson."""
    if isinstance(value, RenderedText):
        return value
    text = orjson.dumps(value, default=default).decode()
    spend(len(text))
    return text

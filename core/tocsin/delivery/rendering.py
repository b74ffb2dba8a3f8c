"""Rendering events with the templates of receivers, so that no field's value can break out.

In a `.json.j2` template every `{{ expression }}` comes out as JSON. Templates see the event as
plain JSON and nothing else, in a sandbox.
"""

from __future__ import annotations

import json
import re
import traceback
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
from jinja2 import (
    FileSystemLoader,
    StrictUndefined,
    TemplateNotFound,
    TemplateSyntaxError,
    Undefined,
)
from jinja2.sandbox import ImmutableSandboxedEnvironment

from tocsin.clock import isoformat
from tocsin.errors import Refused
from tocsin.model import Event, EventType, Json

MAX_BYTES = 256 * 1024

_SUFFIX = ".json.j2"
_SURROGATE = re.compile("[\ud800-\udfff]")


class _Rendered(str):
    """What a template has rendered already: the result of a macro, a block or a block `set`."""

    __slots__ = ()


def _finalize(value: object) -> str:
    if isinstance(value, _Rendered):
        return value
    return orjson.dumps(value, default=_undefined).decode()


def _undefined(value: object) -> None:
    if isinstance(value, Undefined):
        str(value)  # raises what a strict undefined value has to say
    raise TypeError(f"{type(value).__name__} is not a value that JSON can hold")


class _JsonEnvironment(ImmutableSandboxedEnvironment):
    # Jinja joins with this whatever a template renders into a value of its own.
    @staticmethod
    def concat(parts: Iterable[str]) -> str:
        return _Rendered("".join(parts))


class Renderer:
    """Renders events with `<receiver>/<event>.json.j2`, from the first folder that has it."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = tuple(paths)
        self._loader = FileSystemLoader(self._paths)
        self._environment = _JsonEnvironment(
            loader=self._loader,
            undefined=StrictUndefined,
            finalize=_finalize,
            autoescape=False,
            auto_reload=False,  # asking for each delivery whether a file has changed takes longer
        )

    def render(self, receiver: str, event: Event, part: str = "body") -> bytes:
        """Return the part, which is minified JSON.

        Raises `Refused` if there is no such template or part, or if the template fails, gives
        something else than JSON or more than 256 KiB of it; the text names template and line.
        """
        name = _name(receiver, event.event_type)
        if part != "body":
            raise Refused(f"{name} has no part {part!r}, only 'body'")
        text = self._text(name, {"event": _fields(event), "context": event.context})
        try:
            return orjson.dumps(orjson.loads(text))
        except orjson.JSONDecodeError as error:
            raise Refused(f"{name}: the output is not JSON: {error}") from None

    def _text(self, name: str, variables: Mapping[str, Json]) -> str:
        try:
            template = self._environment.get_template(name)
            return _at_most(MAX_BYTES, template.generate(_plain(variables)))
        except TemplateNotFound as error:
            raise Refused(f"no folder of templates holds {error.name}") from None
        except TemplateSyntaxError as error:
            raise Refused(f"{error.name}, line {error.lineno}: {error.message}") from error
        except Exception as error:
            raise Refused(f"{self._place(name, error)}: {error.__cause__ or error}") from error

    def _place(self, name: str, error: Exception) -> str:
        """Return the template and line where `error` was raised; it may be an included one."""
        for frame in reversed(traceback.extract_tb(error.__traceback__)):
            for path in self._paths:
                if Path(frame.filename).is_relative_to(path) and frame.filename.endswith(".j2"):
                    return f"{Path(frame.filename).relative_to(path)}, line {frame.lineno}"
        return name


def _at_most(size: int, pieces: Iterable[str]) -> str:
    kept = []
    for piece in pieces:
        size -= len(piece.encode())
        if size < 0:
            raise ValueError(f"the output is larger than {MAX_BYTES // 1024} KiB")
        kept.append(piece)
    return "".join(kept)


def _name(receiver: str, event_type: EventType) -> str:
    return f"{receiver}/{event_type}{_SUFFIX}"


def _fields(event: Event) -> dict[str, Json]:
    return {
        "id": event.id,
        "event_type": event.event_type,
        "timestamp": isoformat(event.timestamp),
        "subject": event.subject,
        "data": event.data,
    }


def _plain(value: Any) -> Any:
    """Return `value` as it comes out of JSON; lone surrogates, which UTF-8 cannot hold, replaced.

    This is what keeps objects with methods of their own away from templates.
    """
    try:
        return orjson.loads(orjson.dumps(value, default=dict))
    except orjson.JSONEncodeError:
        text = json.dumps(value, default=dict, ensure_ascii=False)
        return json.loads(_SURROGATE.sub("\ufffd", text))

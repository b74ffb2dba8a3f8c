"""Rendering of one part of an event with its template."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from traceback import walk_tb
from types import MappingProxyType
from typing import Any

import orjson
from jinja2 import (
    StrictUndefined,
    Template,
    TemplateError,
    TemplateNotFound,
    TemplateSyntaxError,
    Undefined,
)
from jinja2.meta import find_referenced_templates

from tocsin.clock import isoformat
from tocsin.contracts import load_contract
from tocsin.delivery.rendering.templates import (
    FILTERS,
    RawVariable,
    TemplateEnvironment,
    TemplateLoader,
)
from tocsin.errors import ConfigurationError, Misconfigured
from tocsin.model import Contract, Event, EventType, Json
from tocsin.sandbox import Allowance, spend, write_json


@dataclass(frozen=True, slots=True)
class OutputFormat:
    """One template format: `<receiver>/<event>.<suffix>.j2`."""

    suffix: str
    write: Callable[[Any], str]
    """Converts the value of an expression to text."""
    finish: Callable[[bytes], bytes]
    """Converts the rendered text to output; ValueError if it is not of this format."""
    autoescape: bool = False


def _write_json(value: Any) -> str:
    return write_json(value, _reject_value)


def _write_text(value: Any) -> str:
    if isinstance(value, str):
        spend(len(value))
        return value
    return "" if value is None else _write_json(value)


def _reject_value(value: object) -> None:
    if isinstance(value, Undefined):
        str(value)  # raises the error of a strict undefined value
    raise TypeError(f"{type(value).__name__} is not a JSON value")


def _minify(text: bytes) -> bytes:
    try:
        return orjson.dumps(orjson.loads(text))
    except orjson.JSONDecodeError as error:
        raise ValueError(f"the output is not JSON: {error}") from None


def _pass_through(text: bytes) -> bytes:
    return text


JSON = OutputFormat("json", _write_json, _minify)
TEXT = OutputFormat("txt", _write_text, _pass_through)
HTML = OutputFormat("html", _write_text, _pass_through, autoescape=True)
FORMATS = (JSON, TEXT, HTML)

SHARED = "_shared"
"""The folder with templates that all receivers share."""
PLAIN_PARTS: Mapping[str, OutputFormat] = MappingProxyType(
    {"body": JSON, "text": TEXT, "html": HTML}
)
"""Parts whose template names do not contain the name of the part."""


def list_candidates(receiver: str, event_type: str, part: str) -> dict[str, OutputFormat]:
    """Return the templates that can render a part, best first, with their formats."""
    if part in PLAIN_PARTS:
        form = PLAIN_PARTS[part]
        return {f"{receiver}/{event_type}.{form.suffix}.j2": form}
    places = (f"{receiver}/{event_type}.{part}", f"{receiver}/{part}", f"{SHARED}/{part}")
    return {f"{place}.{form.suffix}.j2": form for place in places for form in FORMATS}


MAX_BYTES = 256 * 1024
"""Maximum size of the output."""
MAX_UNITS = 2_000_000
"""Limit for memory and work, in the units of `tocsin.sandbox.Allowance`."""
MAX_SECONDS = 0.5
"""Limit for CPU time."""
_ENVELOPE = (
    '{"event_type": {{ event.event_type }}, "timestamp": {{ event.timestamp }}, '
    '"data": {{ event.data }}}'
)


@dataclass(frozen=True, slots=True)
class _FoundTemplate:
    template: Template
    form: OutputFormat
    is_envelope: bool
    """Whether this is the shipped envelope, which does not need a template engine."""


class Renderer:
    """Renders the parts of events with receivers' templates.

    `paths` are the plugins' folders. `overrides` is the operator's folder, which takes precedence.
    """

    def __init__(self, paths: Sequence[Path], overrides: Path | None = None) -> None:
        self._paths = (*([overrides] if overrides else []), *paths)
        self._folders = TemplateLoader(paths, overrides)
        self._contracts: dict[str, Contract | Misconfigured | None] = {}
        self._environments = {each: self._environment(each) for each in FORMATS}
        self._found: dict[tuple[str, EventType, str], _FoundTemplate | Misconfigured] = {}

    def _environment(self, form: OutputFormat) -> TemplateEnvironment:
        environment = TemplateEnvironment(
            loader=self._folders,
            undefined=StrictUndefined,
            finalize=form.write,
            autoescape=form.autoescape,
            auto_reload=False,  # checking files for each delivery would be slow
            trim_blocks=True,
            lstrip_blocks=True,
        )
        environment.filters = {**environment.filters, **FILTERS}
        return environment

    async def prepare(self, receiver: str, event_type: EventType, parts: Iterable[str]) -> None:
        """Compile the templates of these parts in a thread, unless they are already compiled.

        Compiling can take seconds, and would block the event loop. If a template cannot be
        compiled, `render` raises the error later.
        """
        missing = [part for part in parts if (receiver, event_type, part) not in self._found]
        if missing:
            await asyncio.to_thread(self._compile, receiver, event_type, missing)

    def _compile(self, receiver: str, event_type: EventType, parts: Iterable[str]) -> None:
        for part in parts:
            with suppress(Misconfigured):
                template = self._template(receiver, event_type, part).template
                self._compile_referenced(template, {template.name})

    def _compile_referenced(self, template: Template, known: set[str | None]) -> None:
        """Compile the templates that a template includes, extends or imports by name."""
        environment = template.environment
        assert environment.loader is not None  # noqa: S101 - each environment here has one
        text, path, _ = environment.loader.get_source(environment, str(template.name))
        tree = environment.parse(text, template.name, path)
        for name in find_referenced_templates(tree):
            if name is not None and name not in known:
                known.add(name)
                with suppress(TemplateError):
                    self._compile_referenced(environment.get_template(name), known)

    def render(self, receiver: str, event: Event, part: str = "body") -> bytes:
        """Return the rendered part of an event; a `body` is minified JSON.

        Raises `Misconfigured` if there is no template, or if it fails, takes too long or produces
        more than 256 KiB. The message names the template and the line.
        """
        found = self._template(receiver, event.template_type, part)
        if found.is_envelope and (envelope := _write_envelope(event)) is not None:
            return envelope
        template, form = found.template, found.form
        variables = {
            **template.environment.globals,
            "event": RawVariable(_event_fields(event)),
            "context": RawVariable(event.context),
            "contract": RawVariable(self._tables(receiver)),
        }
        try:
            with Allowance(MAX_UNITS, MAX_SECONDS):
                context = template.new_context(variables, shared=True)
                return form.finish(_join_bounded(MAX_BYTES, template.root_render_func(context)))
        except Exception as error:
            raise Misconfigured(self._explain(error, str(template.name))) from error

    def find_broken(self, folder: Path) -> Iterator[str]:
        """Yield the error of each template and contract in a folder that cannot be used."""
        for path in sorted(folder.rglob("*.j2")):
            name = path.relative_to(folder).as_posix()
            form = next((each for each in FORMATS if name.endswith(f".{each.suffix}.j2")), TEXT)
            try:
                self._environments[form].get_template(name)
            except Exception as error:  # noqa: BLE001 - of Python's compiler as well
                yield self._explain(error, name)
        for path in sorted(each for each in folder.iterdir() if each.is_dir()):
            try:
                self.contract(path.name)
            except Misconfigured as error:
                yield str(error)

    def contract(self, receiver: str) -> Contract | None:
        """Return the contract of a receiver, or None; raises `Misconfigured`."""
        if receiver not in self._contracts:
            self._contracts[receiver] = self._load_contract(receiver)
        found = self._contracts[receiver]
        if isinstance(found, Misconfigured):
            raise Misconfigured(str(found))
        return found

    def _load_contract(self, receiver: str) -> Contract | Misconfigured | None:
        try:
            return load_contract(self._paths, receiver)
        except ConfigurationError as error:
            return Misconfigured(str(error))

    def _tables(self, receiver: str) -> Mapping[str, Json]:
        contract = self.contract(receiver)
        return {} if contract is None else contract.tables()

    def _template(self, receiver: str, event_type: EventType, part: str) -> _FoundTemplate:
        """Return the template of a part; errors are cached as well."""
        key = receiver, event_type, part
        if key not in self._found:
            self._found[key] = self._find(list_candidates(*key))
        found = self._found[key]
        if isinstance(found, Misconfigured):
            raise Misconfigured(str(found))
        return found

    def _find(self, names: Mapping[str, OutputFormat]) -> _FoundTemplate | Misconfigured:
        for name, form in names.items():
            try:
                template = self._environments[form].get_template(name)
                return _FoundTemplate(template, form, form is JSON and _is_envelope(template))
            except TemplateNotFound:
                continue
            except Exception as error:  # noqa: BLE001 - of Python's compiler as well
                return Misconfigured(self._explain(error, name))
        return Misconfigured(f"no template directory contains {' or '.join(names)}")

    def _explain(self, error: Exception, name: str) -> str:
        """Return the error and its location, which may be in a template that `name` includes."""
        if isinstance(error, TemplateSyntaxError):
            return f"{self._folders.shown(error.filename, error.lineno)}: {error.message}"
        place = self._place(error) or name
        if isinstance(error, TemplateNotFound):
            return f"{place}: no template directory contains {error.name}"
        return f"{place}: {error.__cause__ or error or type(error).__name__}"

    def _place(self, error: Exception) -> str | None:
        for frame, line in reversed(list(walk_tb(error.__traceback__))):
            template = frame.f_globals.get("__jinja_template__")
            if template is not None:
                line_written = template.get_corresponding_lineno(line)
                return self._folders.shown(template.filename, line_written)
        return None


def _is_envelope(template: Template) -> bool:
    """Return whether the template is the same as the shipped envelope, except for comments."""
    environment = template.environment
    assert environment.loader is not None  # noqa: S101 - each environment here has one
    text, *_ = environment.loader.get_source(environment, str(template.name))
    return bool(environment.parse(text) == environment.parse(_ENVELOPE))


def _write_envelope(event: Event) -> bytes | None:
    """Return the output of the shipped envelope; None if only the template can render it."""
    envelope = {
        "event_type": event.template_type.value,
        "timestamp": isoformat(event.timestamp),
        "data": event.data,
    }
    try:
        body = orjson.dumps(envelope, default=dict)
    except orjson.JSONEncodeError:
        return None
    return body if len(body) < MAX_BYTES // 2 else None


def _join_bounded(size: int, pieces: Iterable[str]) -> bytes:
    kept, left = [], size
    for piece in pieces:
        left -= len(piece)
        kept.append(piece)
        if left < 0:
            break
    output = "".join(kept).encode()
    if len(output) > size:
        raise ValueError(f"the output is larger than {size // 1024} KiB")
    return output


def _event_fields(event: Event) -> dict[str, Json]:
    return {
        "id": event.id,
        "event_type": event.template_type,
        "timestamp": isoformat(event.timestamp),
        "time_ms": int(event.timestamp.timestamp() * 1_000),
        "subject": event.subject,
        "key": event.key,
        "severity": event.severity,
        "data": event.data,
    }

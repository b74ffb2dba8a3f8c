"""Mapping templates: what others send in a shape of their own becomes incidents.

A mapping is a Jinja2 template in the sandbox of all templates. It sees `body`, the JSON that was
sent, and renders JSON: `{"incidents": [...], "missing": [...]}`. Whatever it writes is serialised,
so no value can break out of its place. What the body does not have is null, but cannot be gone
through: a body of another shape is refused and never taken for an empty one.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

import orjson
from jinja2 import ChainableUndefined, Template, TemplateSyntaxError, Undefined, nodes
from pydantic import BaseModel, ConfigDict, ValidationError

from tocsin.errors import Refused
from tocsin.json_stream import JsonBody, JsonLimitError, JsonLimits
from tocsin.mapping.mapped_incident import MappedIncident
from tocsin.model import MAX_QUARANTINED, Incident, Json, Received, Rejected
from tocsin.sandbox import Allowance, WritingEnvironment, write_json
from tocsin.validation import explain_errors

VARIABLE = "body"
MAX_LENGTH = 32 * 1024  # compiling more would block the event loop
MAX_UNITS = 20_000_000
MAX_SECONDS = 2.0
"""The bounds of one rendering, and of all that isolate the rejected incidents of a batch."""
LIMITS = JsonLimits(records=100_000, values=200_000, batch_records=250, batch_values=20_000)
"""The bounds of a body. A batch is stored in its own transaction, within 0.1 s or so."""
MAX_REJECTED = 100
"""How many rejected records of a body are kept; the others are counted."""
_MOST_MISTAKES = 5
_JINJA_NAMES = ("caller", "kwargs", "loop", "varargs")


class MappingTemplate:
    """A template that maps JSON to incidents.

    The constructor raises ValueError if the template is invalid. When records cannot be mapped,
    Tocsin shows `source` to say where they came from. `records` names the member of a body that
    contains the list of records; it is an empty string if the body itself is the list. Tocsin then
    renders the template once for each batch of up to 250 records, so that a large body does not
    exceed the limits for one rendering. If `records` is None, Tocsin renders the template once for
    the whole body.
    """

    def __init__(self, text: str, source: str, records: str | None = None) -> None:
        self._source = source
        self._records = records
        self._template = _compile_template(text)

    def read(self, content: bytes, now: datetime) -> Iterator[Received]:
        """Map the content and yield incidents in batches, then the rejected records.

        Incidents without a time get the time `now`. Each step of the iteration is slow, so run it
        in a thread. Raises `Refused` before the first batch if the content is not JSON or is too
        large, or if all incidents are invalid. Also raises `Refused` if the mapping fails, possibly
        after earlier batches.
        """
        body = _parse_body(content, self._records)
        rejects = _Rejects(self._source, content)
        total = 0
        for batch in body.batches():
            rendered = self._render(batch, Allowance(MAX_UNITS, MAX_SECONDS))
            spare = Allowance(MAX_UNITS, MAX_SECONDS)
            incidents = []
            count = len(rendered.incidents)
            for number, value in enumerate(rendered.incidents, total + 1):
                try:
                    incidents.append(_parse_incident(value, now))
                except ValueError as error:
                    all_known = total == 0 and body.records <= count
                    place = f"incident {number} of {count}" if all_known else f"incident {number}"
                    alone = None
                    if rejects.has_room:
                        alone = self._isolate(batch, rendered.incidents, number - total - 1, spare)
                    rejects.add(place, str(error), orjson.dumps(value), alone)
            rejects.add_missing(rendered.missing)
            total += count
            if incidents:
                yield Received(incidents=tuple(incidents), records=count)
            else:
                rejects.records += count
        yield rejects.finish(total)

    def _isolate(
        self, batch: Any, incidents: Sequence[Json], index: int, allowance: Allowance
    ) -> bytes | None:
        """Return a body with only the record of an incident; None if the record is not known.

        One that is too large to be stored is cut, and still too large.

        Renders the template once more, for which all incidents of the batch share an allowance.
        """
        if self._records is None:
            return None
        records = batch.get(self._records) if self._records else batch
        if not isinstance(records, list) or len(records) != len(incidents):
            return None
        alone = [records[index]]
        body = {**batch, self._records: alone} if self._records else alone
        try:
            is_same = self._render(body, allowance).incidents == [incidents[index]]
            return orjson.dumps(body)[:MAX_QUARANTINED] if is_same else None
        except (Refused, orjson.JSONEncodeError):  # such as a value that is nested too deeply
            return None

    def _render(self, body: Json, allowance: Allowance) -> _RenderedMapping:
        try:
            with allowance:
                # not `render`, which keeps frames and the body in a cycle when it fails
                context = self._template.new_context({VARIABLE: body})
                parts = self._template.root_render_func(context)
                text = self._template.environment.concat(parts)
        except Exception as error:
            reason = str(error.__cause__ or error)
            place = _locate_error(error, self._template)
            raise Refused(f"the mapping failed{place}: {reason}") from error
        try:
            return _RenderedMapping.model_validate(orjson.loads(text.encode()))
        except orjson.JSONDecodeError as error:
            raise Refused(f"the mapping's output is not JSON: {error}") from None
        except ValidationError as error:
            raise Refused(
                f"the mapping's output is not valid: {_describe_errors(error, _RenderedMapping)}"
            ) from None


class _Rejects:
    """The rejected records of a body: the first of them, and the number of the others."""

    def __init__(self, source: str, content: bytes) -> None:
        self._source = source
        self._content = content
        self._kept: list[Rejected] = []
        self._missing: dict[str, None] = {}
        self._count = 0
        self.records = 0
        """The number of records that no batch has reported."""

    @property
    def has_room(self) -> bool:
        """Whether the next invalid incident is kept."""
        return self._count < MAX_REJECTED

    def add(self, location: str, reason: str, content: bytes, request: bytes | None) -> None:
        """Add an invalid incident, with a body that contains only its record if there is one."""
        if self.has_room:
            self._kept.append(self._reject(location, reason, content, request))
        self._count += 1

    def add_missing(self, reasons: Iterable[str]) -> None:
        """Add what the sender left out; each batch of a body may say the same."""
        for reason in reasons:
            if len(self._missing) < MAX_REJECTED:
                self._missing[reason] = None

    def finish(self, total: int) -> Received:
        """Return the rejected records; raises `Refused` where they are all of the `total`."""
        if self._count and self._count == total:
            first = self._kept[0]
            raise Refused(f"{first.location}: {first.reason}")
        missing = [self._reject("not sent", reason, self._content, b"") for reason in self._missing]
        return Received(
            rejected=(*self._kept, *missing),
            further_rejected=self._count - len(self._kept),
            records=self.records,
        )

    def _reject(
        self, location: str, reason: str, content: bytes, request: bytes | None
    ) -> Rejected:
        return Rejected(
            source=self._source, location=location, reason=reason, content=content, request=request
        )


class _RenderedMapping(BaseModel):
    """Output of a mapping."""

    model_config = ConfigDict(extra="forbid", strict=True)

    incidents: list[Json]
    missing: list[str] = []
    """Descriptions of missing data, stored with the rejected records."""


class _MissingMember(ChainableUndefined):
    """Placeholder for members that the body lacks."""

    __iter__ = __len__ = Undefined._fail_with_undefined_error  # noqa: SLF001 - meant for this


def _write_value(value: Any) -> str:
    return write_json(value, _write_undefined)


def _write_undefined(value: object) -> None:
    if not isinstance(value, Undefined):
        raise TypeError(f"{type(value).__name__} is not a JSON value")


_environment = WritingEnvironment(
    undefined=_MissingMember, finalize=_write_value, trim_blocks=True, lstrip_blocks=True
)


@lru_cache(maxsize=16)
def _compile_template(text: str) -> Template:
    if len(text) > MAX_LENGTH:
        raise ValueError(f"a mapping can have at most {MAX_LENGTH // 1024} KiB")
    try:
        unknown = sorted(_find_unknown_names(_environment.parse(text)))
        template = _environment.from_string(text)
    except TemplateSyntaxError as error:
        raise ValueError(f"line {error.lineno}: {error.message}") from None
    except Exception:  # noqa: BLE001 - Python's compiler has limits of its own
        raise ValueError("the mapping is nested too deeply") from None
    if unknown:
        raise ValueError(
            f"unknown name {unknown[0]!r}; the only variable in a mapping is {VARIABLE!r}"
        )
    return template


def _find_unknown_names(tree: nodes.Template) -> set[str]:
    """Return the undefined names of the template."""
    names = list(tree.find_all(nodes.Name))
    known = {VARIABLE, *_JINJA_NAMES, *_environment.globals}
    known |= {name.name for name in names if name.ctx != "load"}
    known |= {macro.name for macro in tree.find_all(nodes.Macro)}
    return {name.name for name in names} - known


def _locate_error(error: BaseException, template: Template) -> str:
    """Return the template line of an error, an empty text where it is unknown."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename == "<template>":
            return f" in line {template.get_corresponding_lineno(frame.lineno or 1)}"
    return ""


def _parse_body(content: bytes, records: str | None) -> JsonBody:
    try:
        return JsonBody(content, records, LIMITS)
    except JsonLimitError as error:
        raise Refused(f"the body is too large: {error}") from None
    except ValueError as error:
        raise Refused(f"the body is not JSON: {error}") from None


def _parse_incident(value: Json, now: datetime) -> Incident:
    """Parse an incident; the ValueError names each invalid field."""
    try:
        return MappedIncident.model_validate(value).incident(now)
    except ValidationError as error:
        raise ValueError(_describe_errors(error, MappedIncident)) from None


def _describe_errors(error: ValidationError, model: type[BaseModel]) -> str:
    mistakes = [
        ": ".join(filter(None, (".".join(mistake.path), mistake.words)))
        for mistake in explain_errors(error, model)
    ]
    more = len(mistakes) - _MOST_MISTAKES
    return ", ".join(mistakes[:_MOST_MISTAKES]) + (f" and {more} more" if more > 0 else "")

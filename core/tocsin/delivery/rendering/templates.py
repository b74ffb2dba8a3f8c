"""Templates: the sandbox that they run in, the loader of their files, and their filters."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import orjson
from jinja2 import Environment, FileSystemLoader, Template, TemplateSyntaxError
from jinja2.runtime import Context

from tocsin.model import Json
from tocsin.observables import defang
from tocsin.reports import escape_markdown as escaped
from tocsin.reports import from_json, to_markdown
from tocsin.sandbox import WritingEnvironment, pause, require_data, spend

SHIPPED_PREFIX = "shipped/"
"""Prefix of template names that are looked up only in plugins' folders."""
MAX_TEMPLATE_SIZE = 32 * 1024  # compiling more than that would hold up everything else
_CHARACTERS = 100_000
_SURROGATE = re.compile("[\ud800-\udfff]")
# References, or a code span, in which they are none
_REFERENCES = re.compile(r"(?<!\\)`[^`\n]*`|(?:(?:\\?#|\bGH-)\d+)+", re.IGNORECASE)
_OF_DEFANGING = 10  # units per character, since each word is examined


class RawVariable:
    """A variable as passed in."""

    def __init__(self, value: Json) -> None:
        self._value = value

    @cached_property
    def plain(self) -> Json:
        """The variable after a round trip through JSON, without lone surrogates.

        This keeps objects with methods away from templates. UTF-8 cannot encode lone surrogates.
        """
        try:
            return orjson.loads(orjson.dumps(self._value, default=dict))
        except orjson.JSONEncodeError:
            text = json.dumps(self._value, default=dict, ensure_ascii=False)
            return json.loads(_SURROGATE.sub("\ufffd", text))


class _Context(Context):
    def resolve_or_missing(self, key: str) -> Any:
        # converted on access only: most templates never use the context
        value = super().resolve_or_missing(key)
        return value.plain if isinstance(value, RawVariable) else value


class TemplateEnvironment(WritingEnvironment):
    """Jinja in the sandbox of `tocsin.sandbox`, where templates see variables as plain JSON."""

    context_class = _Context


class TemplateLoader(FileSystemLoader):
    """Loads a template from the operator's folder, or else from the first plugin that has it.

    The loader reads the operator's templates when it is created, so an edited file does not take
    effect until a reload has checked it.
    """

    def __init__(self, paths: Sequence[Path], overrides: Path | None) -> None:
        super().__init__(paths)
        self._paths = tuple(paths)
        self._own = {} if overrides is None else dict(_read_templates(overrides))
        self._shipped = FileSystemLoader(self._paths)

    def get_source(
        self, environment: Environment, template: str
    ) -> tuple[str, str, Callable[[], bool]]:
        """Return text and path; TemplateNotFound, or TemplateSyntaxError if it is too large."""
        if template.startswith(SHIPPED_PREFIX):
            name = template.removeprefix(SHIPPED_PREFIX)
            text, path, is_current = self._shipped.get_source(environment, name)
        elif template in self._own:
            path, content = self._own[template]
            if isinstance(content, OSError):
                raise content
            text, is_current = content.decode(), _always
        else:
            text, path, is_current = super().get_source(environment, template)
        if len(text) > MAX_TEMPLATE_SIZE:
            message = f"a template may have at most {MAX_TEMPLATE_SIZE // 1024} KiB"
            raise TemplateSyntaxError(message, 1, template, path)
        return text, path, is_current

    def load(
        self,
        environment: Environment,
        name: str,
        globals: MutableMapping[str, Any] | None = None,  # noqa: A002 - Jinja's signature
    ) -> Template:
        """Return the template; compilation time does not count against the event."""
        with pause():
            return super().load(environment, name, globals)

    def shown(self, path: str | None, line: int) -> str:
        """Return a readable location in a template.

        An operator's file is shown with its full path, a shipped file with receiver and name.
        """
        for folder in self._paths:
            if path and Path(path).is_relative_to(folder):
                return f"{Path(path).relative_to(folder)}, line {line}"
        return f"{path}, line {line}"


def _read_templates(folder: Path) -> Iterator[tuple[str, tuple[str, bytes | OSError]]]:
    """Yield the name, the path and the content of each template, or why it cannot be read."""
    for path in folder.rglob("*.j2"):
        content: bytes | OSError
        try:
            content = path.read_bytes()
        except OSError as error:
            content = error
        yield path.relative_to(folder).as_posix(), (str(path), content)


def _always() -> bool:
    return True


def escape_markdown(value: object) -> str:
    """Escape text for Markdown, so that it contains no links, mentions or images."""
    text = str(require_data(value))
    spend(len(text))
    escaped_lines = "\n".join(map(escaped, text.splitlines()))
    spend(len(escaped_lines))
    return _neutralize_references(escaped_lines)


def escape_mrkdwn(value: object) -> str:
    """Escape text for mrkdwn (Slack's markup): no links, mentions or date formatting."""
    text = str(require_data(value))
    escaped_text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    spend(len(escaped_text))
    return escaped_text


def defang_text(value: object) -> str:
    """Defang addresses, as in `evil[.]example`, so that clients do not turn them into links."""
    text = str(require_data(value))
    spend(_OF_DEFANGING * len(text))
    return defang(text)


def render_report(report: object) -> str:
    """Return a report of the context as Markdown; ValueError if it is not a report."""
    # our own rendering is bounded; the first report compiles our templates
    with pause():
        text = _neutralize_references(to_markdown(from_json(report))[:_CHARACTERS])
    spend(len(text))
    return text


def _neutralize_references(text: str) -> str:
    """Write issue references in Markdown, such as `#1` and `GH-1`, as code.

    Trackers look for references after they parse the Markdown, so escaping does not help. An
    invisible character would help, but people could no longer search for the text that they see.
    """
    return _REFERENCES.sub(_write_as_code, text)


def _write_as_code(found: re.Match[str]) -> str:
    if found[0].startswith("`"):
        return found[0]
    return "`" + found[0].replace("\\#", "#") + "`"


FILTERS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "defang": defang_text,
        "markdown": escape_markdown,
        "mrkdwn": escape_mrkdwn,
        "report_markdown": render_report,
    }
)

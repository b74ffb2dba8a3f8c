"""Where templates come from: the operator's folder, then those of plugins."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, Template, TemplateSyntaxError

from tocsin.sandbox import pause

SHIPPED_PREFIX = "shipped/"
"""Begins the name of a template that is looked for in plugins' folders alone."""
MAX_TEMPLATE_SIZE = 32 * 1024  # compiling more than that would hold up everything else


class TemplateLoader(FileSystemLoader):
    """Finds a template in the operator's folder, else in the first of plugins' that has it."""

    def __init__(self, paths: Sequence[Path], overrides: Path | None) -> None:
        super().__init__([*([overrides] if overrides else []), *paths])
        self._paths = tuple(paths)
        self._shipped = FileSystemLoader(self._paths)

    def get_source(
        self, environment: Environment, template: str
    ) -> tuple[str, str, Callable[[], bool]]:
        """Return text and path; raises TemplateNotFound, or TemplateSyntaxError if it is large."""
        if template.startswith(SHIPPED_PREFIX):
            name = template.removeprefix(SHIPPED_PREFIX)
            text, path, is_current = self._shipped.get_source(environment, name)
        else:
            text, path, is_current = super().get_source(environment, template)
        if len(text) > MAX_TEMPLATE_SIZE:
            message = f"a template has {MAX_TEMPLATE_SIZE // 1024} KiB at most"
            raise TemplateSyntaxError(message, 1, template, path)
        return text, path, is_current

    def load(
        self,
        environment: Environment,
        name: str,
        globals: MutableMapping[str, Any] | None = None,  # noqa: A002 - Jinja's signature
    ) -> Template:
        """Return the template; the time that it takes to compile is not held against the event."""
        with pause():
            return super().load(environment, name, globals)

    def shown(self, path: str | None, line: int) -> str:
        """Return how a place in a template is named to people.

        The operator's file by its whole path, a shipped one by its receiver and name.
        """
        for folder in self._paths:
            if path and Path(path).is_relative_to(folder):
                return f"{Path(path).relative_to(folder)}, line {line}"
        return f"{path}, line {line}"

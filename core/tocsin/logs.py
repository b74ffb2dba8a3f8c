"""Structured logs on standard error, for Tocsin and its libraries."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from io import StringIO
from threading import Lock
from time import monotonic
from traceback import format_exception
from typing import Any, Literal, TextIO

import orjson

from tocsin.redaction import Redactor
from tocsin.terminal import neutralize


@contextmanager
def _hidden(package: str) -> Iterator[None]:
    """Have an optional import of a package fail, unless it is imported already."""
    if package in sys.modules:
        yield
        return
    sys.modules[package] = None  # type: ignore[assignment] # as `import` documents
    try:
        yield
    finally:
        del sys.modules[package]


with _hidden("rich"):  # only colors tracebacks, and takes 5 MB with Pygments
    import structlog

get_logger = structlog.get_logger
SAMPLED_EVERY = timedelta(seconds=10)


class SampledLog:
    """Warnings that anyone can cause: at most one line of each event per `SAMPLED_EVERY`."""

    def __init__(self, now: Callable[[], float] = monotonic) -> None:
        self._log = structlog.get_logger()
        self._now = now
        self._due_at: dict[str, float] = {}
        self._left_out: dict[str, int] = {}
        self._lock = Lock()

    def warning(self, event: str, **fields: Any) -> None:
        """Log an event of a fixed text; `left_out` is the number of lines since the last one."""
        with self._lock:
            now = self._now()
            if now < self._due_at.get(event, now):
                self._left_out[event] = self._left_out.get(event, 0) + 1
                return
            self._due_at[event] = now + SAMPLED_EVERY.total_seconds()
            left_out = self._left_out.pop(event, 0)
        self._log.warning(event, **fields, **({"left_out": left_out} if left_out else {}))


class RedactedLog:
    """Log of a plugin, without the secrets of its settings: a server may have repeated them."""

    def __init__(self, log: Any, redactor: Redactor) -> None:
        self._log = log
        self._redactor = redactor

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return a method of the log."""

        def call(*args: Any, **fields: Any) -> Any:
            method = "error" if name == "exception" else name
            error = fields.pop("exc_info", name == "exception")
            if error:
                error = error if isinstance(error, BaseException) else sys.exc_info()[1]
                fields["exception"] = "".join(format_exception(error))
            cleaned = {key: self._clean(value) for key, value in fields.items()}
            result = getattr(self._log, method)(*map(self._clean, args), **cleaned)
            return RedactedLog(result, self._redactor) if name in _BINDING else result

        return call

    def _clean(self, value: Any) -> Any:
        match value:
            case None | bool() | int() | float():
                return value
            case str():
                return self._redactor.clean(value)
            case dict():
                return {self._clean(name): self._clean(member) for name, member in value.items()}
            case list() | tuple():
                return [self._clean(item) for item in value]
        text = f"{value!r} {value}"
        return value if self._redactor.clean(text) == text else self._redactor.clean(str(value))


_BINDING = frozenset({"bind", "new", "try_unbind", "unbind"})
LogLevel = Literal["debug", "info", "warning", "error"]


def configure_logs(form: Literal["console", "json"], level: LogLevel = "info") -> None:
    """Write logs for people or, as one JSON object per line, for programs.

    The level is that of Tocsin. Libraries log warnings alone: below that, their lines hold headers,
    bodies and parameters of statements.
    """
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    last = _json_processors() if form == "json" else _console_processors()
    structlog.configure(
        processors=[*shared, *last],
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.getLevelNamesMapping()[level.upper()]
        ),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last],
        )
    )
    handler.addFilter(_is_of_use)
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)


def _is_of_use(record: logging.LogRecord) -> bool:
    """Return whether a line of a library can help: CPython logs one for each end of STARTTLS."""
    return not (record.name == "asyncio" and "eof_received" in record.getMessage())


def _console_processors() -> list[structlog.typing.Processor]:
    colors = sys.stderr.isatty()
    renderer = structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=_write_traceback)
    return [_neutralize_values, renderer]


def _neutralize_values(
    _logger: object, _method: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    return {
        name: value if name == "exc_info" else _neutralize_value(value)
        for name, value in event.items()
    }


def _neutralize_value(value: object) -> object:
    if isinstance(value, str):
        return neutralize(value)
    return value if isinstance(value, int | float | None) else _Neutralized(value)


class _Neutralized:
    """A value that the renderer writes by its `repr`, which escapes some of the characters."""

    def __init__(self, value: object) -> None:
        self._value = value

    def __repr__(self) -> str:
        return neutralize(repr(self._value))


def _write_traceback(stream: TextIO, error: structlog.typing.ExcInfo) -> None:
    text = StringIO()
    structlog.dev.plain_traceback(text, error)
    stream.write(neutralize(text.getvalue()))


def _json_processors() -> list[structlog.typing.Processor]:
    def dumps(value: object, **_: object) -> str:
        try:
            return neutralize(orjson.dumps(value, default=str).decode())
        except TypeError:  # lone surrogates, for example in file names that are not UTF-8
            return json.dumps(value, default=str)

    return [
        structlog.processors.format_exc_info,
        structlog.processors.JSONRenderer(serializer=dumps),
    ]

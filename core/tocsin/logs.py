"""Structured logs on standard error, for Tocsin and its libraries."""

from __future__ import annotations

import json
import logging
import sys
from typing import Literal

import orjson
import structlog


def configure_logs(form: Literal["console", "json"]) -> None:
    """Write logs for people or, as one JSON object per line, for programs."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    last = _json_processors() if form == "json" else _console_processors()
    structlog.configure(
        processors=[*shared, *last],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
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
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)


def _console_processors() -> list[structlog.typing.Processor]:
    plain = structlog.dev.plain_traceback
    colors = sys.stderr.isatty()
    return [structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=plain)]


def _json_processors() -> list[structlog.typing.Processor]:
    def dumps(value: object, **_: object) -> str:
        try:
            return orjson.dumps(value, default=str).decode()
        except TypeError:  # lone surrogates, for example in file names that are not UTF-8
            return json.dumps(value, default=str)

    return [
        structlog.processors.format_exc_info,
        structlog.processors.JSONRenderer(serializer=dumps),
    ]

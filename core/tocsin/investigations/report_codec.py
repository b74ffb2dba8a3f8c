"""Reports as the row of their session keeps them."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any

import orjson
import structlog

from tocsin.investigations.codec import strip_nul
from tocsin.model import Report
from tocsin.reports import from_json, to_json

_log = structlog.get_logger()


def encode_report(report: Report) -> dict[str, Any]:
    """Return a report as JSON that both databases hold."""
    document: dict[str, Any] = orjson.loads(strip_nul(orjson.dumps(to_json(report))))
    return document


def normalize_report(report: Report) -> Report:
    """Return a report as it will be read again; ValueError or TypeError where it could not be."""
    return from_json(encode_report(_replace_surrogates(report)))


def _replace_surrogates(value: Any) -> Any:
    """Return the same without lone surrogates, which are no text that can be stored."""
    match value:
        case Enum():
            return value
        case str():
            return value.encode("utf-8", "replace").decode()
        case tuple():
            return tuple(_replace_surrogates(it) for it in value)
        case _ if is_dataclass(value) and not isinstance(value, type):
            members = {it.name: getattr(value, it.name) for it in fields(value)}
            return replace(value, **{k: _replace_surrogates(v) for k, v in members.items()})
        case _:
            return value


def decode_report(stored: Any, session_id: str) -> Report | None:
    """Return a report that is stored, None where there is none that this version can read."""
    try:
        return None if stored is None else from_json(stored)
    except ValueError as error:
        _log.warning("a report cannot be read", session=session_id, reason=f"{error!s:.500}")
        return None

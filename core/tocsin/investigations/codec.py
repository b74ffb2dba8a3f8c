"""JSON codecs for the questions and answers of a ledger, and for stored reports."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from functools import cache
from typing import Any, get_args

import orjson
import structlog
from pydantic import TypeAdapter

from tocsin.model import (
    FindEntities,
    FindEvents,
    FindIncidents,
    FindNeighbors,
    GetEnrichments,
    GetIncidents,
    GetSightings,
    ListIncidents,
    ListSources,
    Question,
    Report,
    SearchHistory,
)
from tocsin.reports import from_json, to_json

_KINDS: dict[type[Question[Any]], str] = {
    ListSources: "who-is-there",
    GetIncidents: "incidents-numbered",
    FindIncidents: "incidents-about",
    ListIncidents: "incidents-within",
    FindEntities: "entities-like",
    GetSightings: "sightings-of",
    FindNeighbors: "neighbours-of",
    FindEvents: "events-of",
    GetEnrichments: "enrichments-of",
    SearchHistory: "matching",
}
"""The kinds as ledgers store them; these never change, or stored ledgers become unreadable."""
_QUESTIONS = {kind: question for question, kind in _KINDS.items()}
_ESCAPED = re.compile(rb"(\\\\)|\\u0000")  # skips escaped backslashes
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}".encode()
_log = structlog.get_logger()


def question_kind(question: type[Question[Any]]) -> str:
    """Return the name of a kind of question in the ledger, such as `incidents-about`."""
    return _KINDS[question]


@cache
def _question_adapter(kind: str) -> TypeAdapter[Any]:
    return TypeAdapter(_QUESTIONS[kind])


@cache
def _answer_adapter(kind: str) -> TypeAdapter[Any]:
    [of_question] = _QUESTIONS[kind].__orig_bases__  # type: ignore[attr-defined]
    return TypeAdapter(*get_args(of_question))


def encode_question(question: Question[Any]) -> str:
    """Return a question as JSON. Raises ValueError for text that is not valid Unicode."""
    return _encode(_question_adapter(question_kind(type(question))), question)


def decode_question(kind: str, text: str) -> Question[Any]:
    """Return the question. Raises ValueError or KeyError if this version does not know it."""
    question: Question[Any] = _question_adapter(kind).validate_json(text)
    return question


def encode_answer(kind: str, content: Any) -> str:
    """Return the content of an answer as JSON. Raises ValueError if it cannot be encoded."""
    return _encode(_answer_adapter(kind), content)


def decode_answer(kind: str, text: str) -> Any:
    """Return the content of an answer. Raises ValueError if this version cannot read it."""
    return _answer_adapter(kind).validate_json(text)


def _encode(adapter: TypeAdapter[Any], value: object) -> str:
    return strip_nul(adapter.dump_json(value, fallback=str, warnings="error")).decode()


def strip_nul(content: bytes) -> bytes:
    """Return JSON text without U+0000, which PostgreSQL cannot store in text."""
    if rb"\u0000" not in content:
        return content
    return _ESCAPED.sub(lambda found: found[1] or _REPLACEMENT, content)


def encode_report(report: Report) -> dict[str, Any]:
    """Return a report as JSON that both databases can store."""
    document: dict[str, Any] = orjson.loads(strip_nul(orjson.dumps(to_json(report))))
    return document


def normalize_report(report: Report) -> Report:
    """Return a report as it will be read back. Raises ValueError or TypeError if it cannot be."""
    return from_json(encode_report(_replace_surrogates(report)))


def _replace_surrogates(value: Any) -> Any:
    """Return a value with lone surrogates replaced, since they cannot be stored."""
    match value:
        case Enum():
            return value
        case str():
            return value.encode("utf-8", "replace").decode()
        case tuple():
            return tuple(_replace_surrogates(member) for member in value)
        case _ if is_dataclass(value) and not isinstance(value, type):
            members = {field_.name: getattr(value, field_.name) for field_ in fields(value)}
            return replace(value, **{k: _replace_surrogates(v) for k, v in members.items()})
        case _:
            return value


def decode_report(stored: Any, session_id: str) -> Report | None:
    """Return a stored report, None if there is none or this version cannot read it."""
    try:
        return None if stored is None else from_json(stored)
    except ValueError as error:
        _log.warning("stored report cannot be read", session=session_id, reason=f"{error!s:.500}")
        return None

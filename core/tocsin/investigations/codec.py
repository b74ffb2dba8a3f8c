"""JSON codecs for the questions and answers of a ledger, and for stored reports."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any, TypeVar, get_args

import orjson
import structlog
from pydantic import TypeAdapter

from tocsin.model import QUESTIONS, Question, Report
from tocsin.reports import from_json, to_json

T = TypeVar("T")
_CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")
_ESCAPED = re.compile(
    rb"(\\\\)|\\u0000"
)  # a backslash that is escaped says nothing of what follows
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}".encode()


def question_kind(question: type[Question[Any]]) -> str:
    """Return what the ledger calls a kind of question, such as `incidents-about`."""
    return _CAPITAL.sub("-", question.__name__).lower()


def _answer_adapter(question: type[Question[T]]) -> TypeAdapter[T]:
    [of_question] = question.__orig_bases__  # type: ignore[attr-defined]
    return TypeAdapter(*get_args(of_question))


_QUESTIONS: dict[str, TypeAdapter[Any]] = {
    question_kind(question): TypeAdapter(question) for question in QUESTIONS
}
_ANSWERS: dict[str, TypeAdapter[Any]] = {
    question_kind(question): _answer_adapter(question) for question in QUESTIONS
}


def encode_question(question: Question[Any]) -> str:
    """Return a question as JSON; raises ValueError for text that is no text."""
    return _encode(_QUESTIONS[question_kind(type(question))], question)


def decode_question(kind: str, text: str) -> Question[Any]:
    """Return the question; raises ValueError or KeyError where this version knows none such."""
    question: Question[Any] = _QUESTIONS[kind].validate_json(text)
    return question


def encode_answer(kind: str, content: Any) -> str:
    """Return the content of an answer as JSON; raises ValueError where it cannot be that."""
    return _encode(_ANSWERS[kind], content)


def decode_answer(kind: str, text: str) -> Any:
    """Return the content of an answer; raises ValueError where this version does not take it."""
    return _ANSWERS[kind].validate_json(text)


def _encode(adapter: TypeAdapter[Any], value: object) -> str:
    return strip_nul(adapter.dump_json(value, fallback=str, warnings="error")).decode()


def strip_nul(content: bytes) -> bytes:
    """Return JSON text without U+0000, which PostgreSQL holds in no text."""
    if rb"\u0000" not in content:
        return content
    return _ESCAPED.sub(lambda found: found[1] or _REPLACEMENT, content)


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
            members = {field_.name: getattr(value, field_.name) for field_ in fields(value)}
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

"""Query language of the simulated cluster."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from tocsin.testing import ErrorResponse

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def stamp(moment: datetime) -> int:
    """Return a time in milliseconds since 1970."""
    return (moment - _EPOCH) // _MILLISECOND


def values_at(document: Any, place: str) -> list[Any]:
    """Return what a document has in a field, whether it is written nested or dotted."""
    if isinstance(document, list):
        return [value for item in document for value in values_at(item, place)]
    if not isinstance(document, dict):
        return []
    found: list[Any] = []
    if (value := document.get(place)) is not None:
        found += value if isinstance(value, list) else [value]
    dot = place.find(".")
    while dot >= 0:
        if (inner := document.get(place[:dot])) is not None:
            found += values_at(inner, place[dot + 1 :])
        dot = place.find(".", dot + 1)
    return [value for value in found if value is not None]


def is_let_by(query: dict[str, Any], document: dict[str, Any], identifier: str) -> bool:
    """Return whether a query lets a document by; a clause that is unknown is an error, as there."""
    [(kind, told)] = query.items()
    match kind:
        case "match_all":
            return True
        case "ids":
            return identifier in told["values"]
        case "exists":
            return bool(values_at(document, told["field"]))
        case "bool":
            return _bool(told, document, identifier)
        case "term" | "terms" | "range":
            [(field, what)] = told.items()
            return any(_CLAUSES[kind](value, what) for value in values_at(document, field))
    raise ErrorResponse(400, f"unknown query [{kind}]")


def _bool(told: dict[str, Any], document: dict[str, Any], identifier: str) -> bool:
    def counted(kind: str) -> Iterator[bool]:
        clauses = told.get(kind, [])
        for clause in clauses if isinstance(clauses, list) else [clauses]:
            yield is_let_by(clause, document, identifier)

    if unknown := told.keys() - {"filter", "must", "must_not", "should", "minimum_should_match"}:
        raise ErrorResponse(400, f"[bool] does not support {sorted(unknown)}")
    return (
        all(counted("filter"))
        and all(counted("must"))
        and not any(counted("must_not"))
        and sum(counted("should")) >= told.get("minimum_should_match", 0)
    )


def _is_term(value: Any, what: Any) -> bool:
    wanted, options = (what["value"], what) if isinstance(what, dict) else (what, {})
    if "." in str(value) and str(value).replace(".", "").isdigit():  # of the type `ip`
        if options.get("case_insensitive"):
            raise ErrorResponse(
                400, "fields of the type [ip] do not support case insensitive terms"
            )
        if not str(wanted).replace(".", "").isdigit():
            raise ErrorResponse(400, f"{wanted!r} is not an IP string literal")
    if options.get("case_insensitive"):
        return str(value).casefold() == str(wanted).casefold()
    return str(value) == str(wanted)


def _is_one(value: Any, what: list[Any]) -> bool:
    return any(_is_term(value, wanted) for wanted in what)


def _is_within(value: Any, what: dict[str, Any]) -> bool:
    bounds = {name: item for name, item in what.items() if name in ("gte", "gt", "lte", "lt")}
    number = _number(value)
    return all(_COMPARED[name](number, _number(bound)) for name, bound in bounds.items())


def _number(value: Any) -> float:
    try:
        return float(value)
    except ValueError:
        return stamp(datetime.fromisoformat(value))


_COMPARED = {
    "gte": lambda one, other: one >= other,
    "gt": lambda one, other: one > other,
    "lte": lambda one, other: one <= other,
    "lt": lambda one, other: one < other,
}
_CLAUSES = {"term": _is_term, "terms": _is_one, "range": _is_within}


def moments(query: dict[str, Any], field: str) -> tuple[datetime | None, datetime | None]:
    """Return between which times a query lets documents by at most, by its outermost clauses."""
    starts, ends = [], []
    for clause in query.get("bool", {}).get("filter", []):
        bounds = clause.get("range", {}).get(field, {})
        for names, times, step in ((("gte", "gt"), starts, 0), (("lt", "lte"), ends, 1)):
            times += [
                _EPOCH + (int(_number(bounds[name])) + step) * _MILLISECOND
                for name in names
                if name in bounds
            ]
    return max(starts, default=None), min(ends, default=None)

"""Aggregations of the simulated cluster."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from .query import stamp, values_at

Told = tuple[datetime, str, dict[str, Any], dict[str, Any]]
"""When a document is from, its id, and what is searched and what is shown of it."""


def composite(found: Iterable[Told], asked: Mapping[str, Any], field: str) -> dict[str, Any]:
    """Return what aggregations say of documents: `composite`, and what may stand in it."""
    documents = list(found)
    return {
        name: _composite(documents, how, field)
        if "composite" in how
        else _single(documents, how, field)
        for name, how in asked.items()
    }


def _composite(documents: list[Told], how: Mapping[str, Any], field: str) -> dict[str, Any]:
    groups = defaultdict(list)
    for document in documents:
        key = _key(document, how["composite"]["sources"])
        if key is not None:
            groups[tuple(key.items())].append(document)
    most = how["composite"]["size"]
    return {
        "buckets": [
            {
                "key": dict(key),
                "doc_count": len(inside),
                **composite(inside, how.get("aggs", {}), field),
            }
            for key, inside in list(groups.items())[:most]
        ]
    }


def _key(document: Told, sources: Iterable[Mapping[str, Any]]) -> dict[str, Any] | None:
    key: dict[str, Any] = {}
    for source in sources:
        [(name, how)] = source.items()
        if "date_histogram" in how:
            interval = int(how["date_histogram"]["fixed_interval"].removesuffix("ms"))
            key[name] = stamp(document[0]) // interval * interval
            continue
        values = values_at(document[2], how["terms"]["field"])
        if not values and not how["terms"].get("missing_bucket"):
            return None
        key[name] = values[0] if values else None
    return key


def _single(documents: list[Told], how: Mapping[str, Any], field: str) -> Any:
    stamps = [stamp(at) for at, *_ in documents]
    match how:
        case {"min": {"field": asked}} if asked == field:
            return {"value": float(min(stamps)) if stamps else None}
        case {"max": {"field": asked}} if asked == field:
            return {"value": float(max(stamps)) if stamps else None}
        case {"top_hits": {"size": 1, "sort": [{**order}]}} if order == {field: "desc"}:
            hits = sorted(documents, key=lambda record: (record[0], record[1]))[-1:]
            return {"hits": {"hits": [{"_id": hit[1], "_source": hit[3]} for hit in hits]}}
    raise ValueError(f"an aggregation that is not known: {how}")

"""STIX 2.1 lists: bundles of indicators with simple patterns.

Simple patterns are comparisons of one property with a value, joined by OR, as in indicator feeds.
Other patterns (AND, FOLLOWEDBY, LIKE, MATCHES, qualifiers) do not apply to a single entity, and
their indicators are skipped. STIX 2.1, sections 4.7 and 9.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from ipaddress import ip_network
from typing import Any

from tocsin import EntityKind, parse_json
from tocsin_plugins.enrichers.list_entries import ListEntry, ListIndex

_STRING = r"'((?:[^'\\]|\\.)*)'"
_COMPARISON = re.compile(rf"([a-z0-9-]+):([\w.'\"-]+)\s*(=|ISSUBSET)\s*{_STRING}")
_OBSERVATION = re.compile(r"\s*\[((?:[^\[\]']|'(?:[^'\\]|\\.)*')*)\]\s*")
_OR = re.compile(r"\s+OR\s+")
_OR_OBSERVATION = re.compile(r"OR(?=[\s\[])")
_ESCAPED = re.compile(r"\\(.)")
_PROPERTIES = {
    ("ipv4-addr", "value"): EntityKind.IP,
    ("ipv6-addr", "value"): EntityKind.IP,
    ("domain-name", "value"): EntityKind.DOMAIN,
    ("url", "value"): EntityKind.URL,
    ("email-addr", "value"): EntityKind.EMAIL,
    ("email-message", "from_ref.value"): EntityKind.EMAIL,
    ("file", "name"): EntityKind.FILE,
    ("user-account", "account_login"): EntityKind.USER,
    ("user-account", "user_id"): EntityKind.USER,
}


def read_stix(content: bytes) -> ListIndex:
    """Return the entries of a bundle, or of one indicator; ValueError for anything else."""
    found = parse_json(content)
    objects = _objects(found)
    entries: list[ListEntry] = []
    skipped = 0
    for item in objects:
        if item.get("type") != "indicator" or item.get("revoked") is True:
            continue
        try:
            entries += _entries(item)
        except ValueError:
            skipped += 1
    return ListIndex(entries, skipped)


def _objects(found: Any) -> list[dict[str, Any]]:
    match found:
        case {"type": "bundle", "objects": list(objects)}:
            return [item for item in objects if isinstance(item, dict)]
        case {"type": "indicator"}:
            return [found]
    raise ValueError("neither a STIX bundle nor an indicator")


def _entries(indicator: dict[str, Any]) -> Iterator[ListEntry]:
    """Yield an entry for each value of an indicator; ValueError if its pattern is not simple."""
    if indicator.get("pattern_type", "stix") != "stix":
        raise ValueError("the pattern is not in the STIX pattern language")
    for kind, value in list(parse_comparisons(str(indicator.get("pattern", "")))):
        yield ListEntry(
            kind=kind,
            value=value,
            description=str(indicator.get("name") or indicator.get("description") or ""),
            tags=_indicator_tags(indicator),
            score=_confidence_score(indicator.get("confidence")),
            valid_until=_parse_time(indicator.get("valid_until")),
        )


def parse_comparisons(pattern: str) -> Iterator[tuple[EntityKind, str]]:
    """Yield the comparisons of a simple pattern; ValueError for any other."""
    position = 0
    while match := _OBSERVATION.match(pattern, position):
        yield from _read_comparison(match[1])
        position = match.end()
        if position == len(pattern):
            return
        joined = _OR_OBSERVATION.match(pattern, position)
        if not joined:
            break
        position = joined.end()
    raise ValueError(f"unsupported pattern (only comparisons joined by OR): {pattern!r:.100}")


def _read_comparison(expression: str) -> Iterator[tuple[EntityKind, str]]:
    position = len(expression) - len(expression.lstrip())
    end = len(expression.rstrip())
    while match := _COMPARISON.match(expression, position, end):
        yield _kind(match[1], match[2]), _validate_comparison(match)
        if match.end() == end:
            return
        joined = _OR.match(expression, match.end(), end)
        if not joined:
            break
        position = joined.end()
    raise ValueError(f"not a simple comparison: {expression!r:.100}")


def _kind(kind: str, path: str) -> EntityKind:
    if kind == "file" and path.startswith("hashes."):
        return EntityKind.FILE_HASH
    if found := _PROPERTIES.get((kind, path)):
        return found
    raise ValueError(f"unsupported property {kind}:{path}")


def _validate_comparison(match: re.Match[str]) -> str:
    value = _ESCAPED.sub(r"\1", match[4])
    is_address = match[1] in ("ipv4-addr", "ipv6-addr")
    if is_address:
        ip_network(value, strict=False)
    elif match[3] != "=" or not value:
        raise ValueError("ISSUBSET requires an address")
    return value


def _indicator_tags(indicator: dict[str, Any]) -> tuple[str, ...]:
    several = (indicator.get("indicator_types"), indicator.get("labels"))
    return tuple(
        dict.fromkeys(str(tag) for tags in several if isinstance(tags, list) for tag in tags)
    )


def _confidence_score(confidence: Any) -> int | None:
    return confidence if type(confidence) is int and 0 <= confidence <= 100 else None  # noqa: PLR2004 - section 3.2


def _parse_time(text: Any) -> datetime | None:
    """Return a timestamp; ValueError if it is none."""
    if text is None:
        return None
    moment = datetime.fromisoformat(str(text))
    return moment.replace(tzinfo=moment.tzinfo or UTC)

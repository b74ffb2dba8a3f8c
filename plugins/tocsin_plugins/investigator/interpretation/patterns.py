"""Networks, address ranges and names with wildcards in a message."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tocsin import Entity, EntityKind, EntityPattern

_V4 = r"(?:[0-9]{1,3}\.){3}[0-9]{1,3}"
_V6 = r"[0-9a-f]*:[0-9a-f:.]*[0-9a-f:]"
_START, _END = r"(?<![\w.:/@\\-])", r"(?![\w:/*]|[.-][\w*])"
_DASH = r"\s*(?:-|\u2013|\.\.)\s*|\s+(?:through|until|to)\s+"
_RANGE = re.compile(
    rf"{_START}(?:(?P<first>{_V4})(?:{_DASH})(?P<last>{_V4}|[0-9]{{1,3}})"
    rf"|(?P<first6>{_V6})(?:{_DASH})(?P<last6>{_V6})){_END}",
    re.IGNORECASE,
)
_BETWEEN = re.compile(
    rf"\bbetween\s+(?P<first>{_V4}|{_V6})\s+and\s+(?P<last>{_V4}|{_V6}){_END}", re.IGNORECASE
)
_NETWORK = re.compile(
    rf"{_START}(?P<text>(?:{_V4}|{_V6})/(?:{_V4}|[0-9]{{1,4}})){_END}", re.IGNORECASE
)
_WILDCARD = re.compile(
    r"(?:\b(?P<kind>user(?:name)?s?|accounts?|host(?:name)?s?|machines?|servers?|domains?)[\s:=]+)?"
    r"(?<![^\s,;:=(\"'])[\"']?(?P<text>[\w.$@\\-]*\*[\w.*$@\\-]*)[\"']?(?=[\s,;:?!)]|\.?$|\.\s)",
    re.IGNORECASE,
)
_DEFANGED = re.compile(r"(?<=[0-9a-fA-F*])\[([.:])\](?=[0-9a-fA-F*])")
_NAMES = (EntityKind.HOST, EntityKind.DOMAIN)


@dataclass(frozen=True, slots=True)
class MessagePatterns:
    """The patterns in a text."""

    patterns: tuple[EntityPattern, ...]
    entities: tuple[Entity, ...]
    """Networks and ranges of a single address."""
    invalid: tuple[str, ...]
    """Texts that look like a pattern and are none."""
    rest: str
    """The text without them."""


def find_patterns(text: str) -> MessagePatterns:
    """Return the networks, ranges and wildcards in a text."""
    reader = _PatternReader()
    text = _DEFANGED.sub(r"\1", text)
    for expression in (_BETWEEN, _RANGE):
        text = expression.sub(reader.read_range, text)
    text = _NETWORK.sub(reader.read_network, text)
    text = _WILDCARD.sub(reader.read_wildcard, text)
    return MessagePatterns(
        tuple(dict.fromkeys(reader.patterns)),
        tuple(dict.fromkeys(reader.entities)),
        tuple(dict.fromkeys(reader.invalid)),
        text,
    )


class _PatternReader:
    """Reads matches, and replaces what it has read by a space."""

    def __init__(self) -> None:
        self.patterns: list[EntityPattern] = []
        self.entities: list[Entity] = []
        self.invalid: list[str] = []

    def read_range(self, match: re.Match[str]) -> str:
        groups = match.groupdict()
        first, last = (groups[name] or groups.get(f"{name}6") or "" for name in ("first", "last"))
        joined = match[0][len(first) :].strip().lower()
        if joined.startswith("to ") and not _is_near(first, last):
            return match[0]  # a source and a destination
        return self._read(f"{first}-{last}", match[0])

    def read_network(self, match: re.Match[str]) -> str:
        return self._read(match["text"], match["text"])

    def read_wildcard(self, match: re.Match[str]) -> str:
        word = (match["kind"] or "").lower()
        kinds = (EntityKind.USER,) if word.startswith(("user", "acc")) else _NAMES
        return self._read(match["text"].rstrip("."), match["text"], kinds)

    def _read(self, text: str, shown: str, kinds: tuple[EntityKind, ...] = _NAMES) -> str:
        try:
            pattern = EntityPattern.parse(text, kinds)
        except ValueError:
            self.invalid.append(shown)
            return " "
        if pattern.bounds and pattern.bounds[0] == pattern.bounds[1]:
            self.entities.append(Entity(EntityKind.IP, str(pattern.bounds[0])))
        else:
            self.patterns.append(pattern)
        return " "


def _is_near(first: str, last: str) -> bool:
    """Return whether two addresses are close enough to be the ends of one range."""
    if last.isdecimal():
        return True
    parts = 2 if "." in last else 4
    mark = "." if "." in last else ":"
    return first.lower().split(mark)[:parts] == last.lower().split(mark)[:parts]

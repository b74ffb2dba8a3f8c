"""Words of a message that no rule understood."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from tocsin import Entity, find_observables
from tocsin_plugins.investigator.interpretation.vocabulary import (
    is_common,
    strip_severity_and_score,
)

_QUOTES = "\"'`\u201c\u201d\u2018\u2019\u201e\u00ab\u00bb"
_EDGES = f" \t.,;:!?\u2026\u00bf\u00a1{_QUOTES}()[]{{}}<>-\u2013\u2014&"
_LABEL = re.compile(r"(?P<label>[A-Za-z][\w.]*)[=:](?P<value>[^/].*)")
_LABELS = frozenset(
    re.findall(
        r"\w+",
        """
        account address cve domain email file hash host hostname incident ip mailbox md5 process
        sha1 sha256 technique url user username
        """,
    )
)
_PARTS = re.compile(r"[^\W_]+")


def find_leftovers(text: str, entities: Iterable[Entity], techniques: Iterable[str]) -> list[str]:
    """Return the words of a text that are neither names nor common words, each once, in order.

    `text` is without times, incident numbers, providers and patterns.
    """
    named = [entity.value.lower() for entity in entities] + [name.lower() for name in techniques]
    tokens = strip_severity_and_score(text).split()
    return list(dict.fromkeys(left for token in tokens for left in _find_unread(token, named)))


def _find_unread(token: str, named: list[str]) -> Iterator[str]:
    """Yield a token if it was not understood, or the label of a name that no rule reads."""
    plain = token.strip(_EDGES)
    if not plain or not any(letter.isalnum() for letter in plain):
        return
    is_part = any(plain.lower() in name for name in named)
    if not is_part and (match := _LABEL.fullmatch(plain)) and _is_named(match["value"], named):
        if match["label"].lower() not in _LABELS:
            yield plain[: match.start("value")]
        return
    if not _is_named(plain, named) and not _is_common(plain):
        yield plain


def _is_named(plain: str, named: list[str]) -> bool:
    value = plain.lower()
    if any(value == name or (" " in name and value in name) for name in named):
        return True
    found = find_observables(plain)
    values = [*(entity.value.lower() for entity in found.entities), *found.techniques]
    return any(name.lower() in named for name in values)


def _is_common(plain: str) -> bool:
    """Return whether a token consists of common words, such as `host/user` or `what's`."""
    return all(is_common(part.lower()) for part in _PARTS.findall(plain))

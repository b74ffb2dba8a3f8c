"""Writing addresses so that nobody can click on them."""

from __future__ import annotations

import re

from tocsin.model import Entity, EntityKind
from tocsin.observables.refanging import refang_word
from tocsin.observables.values import read_value

_WORD = re.compile(r"[^\s\"'<>,;|`]{4,}")
_LINK_DOT = re.compile(r"(?<=\w)\.(?=[\w])")
_LINK_HTTP = re.compile(r"\bhttp(?=s?://)", re.IGNORECASE)
_LINK_EDGES = "()[]{}*!?.,:"
_CLICKABLE = frozenset(
    {EntityKind.IP, EntityKind.DOMAIN, EntityKind.URL, EntityKind.EMAIL, EntityKind.HOST}
)


def defang(text: str) -> str:
    """Return `text` with every address in it written so that no program makes a link of it.

    `http://evil.example/a.html` becomes `hxxp[://]evil[.]example/a[.]html`, and so do domains, IP
    and e-mail addresses; other words stay as they are. `refang` turns it back.
    """
    return _WORD.sub(lambda found: _defang_word(found[0]), text)


def _defang_word(word: str) -> str:
    if not any(mark in word for mark in ".@:") or not _is_clickable(word):
        return word
    word = _LINK_HTTP.sub("hxxp", refang_word(word)).replace("://", "[://]").replace("@", "[@]")
    return _LINK_DOT.sub("[.]", word)


def _is_clickable(word: str) -> bool:
    if "://" in word or "www." in word.lower():
        return True
    found = read_value(refang_word(word).strip(_LINK_EDGES) or word, certain=True)
    return any(isinstance(find, Entity) and find.kind in _CLICKABLE for find in found)

"""Defanged addresses: writing and reading addresses that nobody can click on."""

from __future__ import annotations

import re

from tocsin.model import Entity, EntityKind
from tocsin.observables.values import read_value

_DOT = re.compile(r"[\[({](?:\.|dot|d0t|punkt)[\])}]|\[\.(?=\w)|(?<=\w)\.\]", re.IGNORECASE)
_WRAPPED_LABEL = re.compile(r"\.\[([a-z0-9-]{1,63})\]", re.IGNORECASE)
_AT = re.compile(r"[\[({](?:@|at)[\])}]", re.IGNORECASE)
_COLONS = re.compile(r"[\[({](://?|::?|//?)[\])}]")
_HTTP = re.compile(r"\b(?:h(?:xx|\*\*)p|meow)(s?)(?=:)", re.IGNORECASE)
_FTP = re.compile(r"\bf(?:x|\*)p(s?)(?=:)", re.IGNORECASE)
_MARKS = re.compile(r"[\[({\\]|\.\]|(?:h(?:xx|\*\*)p|f[x*]p|meow)s?:", re.IGNORECASE)
_BRACKETED = re.compile(r"[\[({](?:\.|dot|@|at)[\])}]", re.IGNORECASE)
_SPACED = re.compile(r"[ \t]?([\[({](?:\.|dot|@|at)[\])}])[ \t]?", re.IGNORECASE)
_WORD = re.compile(r"[^\s\"'<>,;|`]{4,}")
_LINK_DOT = re.compile(r"(?<=\w)\.(?=[\w])")
_LINK_HTTP = re.compile(r"\bhttp(?=s?://)", re.IGNORECASE)
_LINK_EDGES = "()[]{}*!?.,:"
_CLICKABLE = frozenset({EntityKind.DOMAIN, EntityKind.URL, EntityKind.EMAIL, EntityKind.HOST})


def defang(text: str) -> str:
    """Return `text` with addresses defanged so that programs do not turn them into links.

    `http://evil.example/a.html` becomes `hxxp[://]evil[.]example/a[.]html`; domains and email
    addresses are treated the same way. Other words do not change. Bare IP addresses do not change
    either, because programs do not turn them into links and people search for them. `refang`
    reverses the change.
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


def refang(text: str) -> str:
    """Return `text` with all defanged addresses restored; other text does not change.

    This function restores the schemes `hxxp`, `meow` and `fxp` and dots after a backslash. In any
    kind of brackets, it also restores `.`, `:`, `::`, `://`, `@`, `dot` and `at`, with or without
    spaces around them.
    """
    return " ".join(map(refang_word, join_defanged(text).split(" ")))


def join_defanged(text: str) -> str:
    """Return `text` without spaces around a bracketed dot or at sign."""
    return _SPACED.sub(r"\1", text) if _BRACKETED.search(text) else text


def refang_word(word: str) -> str:
    """Return a word without spaces, refanged."""
    if not _MARKS.search(word):
        return word
    word = _COLONS.sub(r"\1", _AT.sub("@", _DOT.sub(".", word)))
    word = _FTP.sub(r"ftp\1", _HTTP.sub(r"http\1", _WRAPPED_LABEL.sub(r".\1", word)))
    unescaped = word.replace("\\.", ".")
    return word if "\\" in unescaped else unescaped

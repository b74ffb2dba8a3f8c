"""Reading addresses that were written so that nobody can click on them."""

from __future__ import annotations

import re

_DOT = re.compile(r"[\[({](?:\.|dot|d0t|punkt)[\])}]|\[\.(?=\w)|(?<=\w)\.\]", re.IGNORECASE)
_WRAPPED_LABEL = re.compile(r"\.\[([a-z0-9-]{1,63})\]", re.IGNORECASE)
_AT = re.compile(r"[\[({](?:@|at)[\])}]", re.IGNORECASE)
_COLONS = re.compile(r"[\[({](://?|::?|//?)[\])}]")
_HTTP = re.compile(r"\b(?:h(?:xx|\*\*)p|meow)(s?)(?=:)", re.IGNORECASE)
_FTP = re.compile(r"\bf(?:x|\*)p(s?)(?=:)", re.IGNORECASE)
_MARKS = re.compile(r"[\[({\\]|\.\]|(?:h(?:xx|\*\*)p|f[x*]p|meow)s?:", re.IGNORECASE)
_BRACKETED = re.compile(r"[\[({](?:\.|dot|@|at)[\])}]", re.IGNORECASE)
_SPACED = re.compile(r"[ \t]?([\[({](?:\.|dot|@|at)[\])}])[ \t]?", re.IGNORECASE)


def refang(text: str) -> str:
    """Return `text` with each defanged address as it really is; other text stays as it is.

    Read are `hxxp`, `meow` and `fxp` for schemes; `.`, `:`, `::`, `://`, `@`, `dot` and `at` in
    brackets of any kind, with a space around them or not; and dots after a backslash.
    """
    return " ".join(map(refang_word, join_defanged(text).split(" ")))


def join_defanged(text: str) -> str:
    """Return `text` without the spaces around a dot or at-sign in brackets."""
    return _SPACED.sub(r"\1", text) if _BRACKETED.search(text) else text


def refang_word(word: str) -> str:
    """Return a word, which has no spaces, as it really is."""
    if not _MARKS.search(word):
        return word
    word = _COLONS.sub(r"\1", _AT.sub("@", _DOT.sub(".", word)))
    word = _FTP.sub(r"ftp\1", _HTTP.sub(r"http\1", _WRAPPED_LABEL.sub(r".\1", word)))
    unescaped = word.replace("\\.", ".")
    return word if "\\" in unescaped else unescaped

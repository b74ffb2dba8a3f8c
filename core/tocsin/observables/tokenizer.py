"""Tokenizer that splits a text into words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from tocsin.observables.defanged import join_defanged
from tocsin.observables.word_readings import WORD_LIMIT

_PART = 65_536
_DELIMITERS = "\"'<>,;|`"
_KEPT = {delimiter: chr(0xE000 + n) for n, delimiter in enumerate(f" {_DELIMITERS}")}
"""Placeholders for delimiters inside quoted URLs and paths, until the words are split."""
_GIVE_BACK = str.maketrans({kept: delimiter for delimiter, kept in _KEPT.items()})

# Each begins with a literal, so that `re` can skip to it.
_QUOTED = r"(?:(?<=[\"'][A-Za-z]:\\)|(?<=[\"'][A-Za-z]:\\\\))(?:(?! -)[^\"'/\n]){1,260}"
_QUOTED_END = r"\.[A-Za-z0-9]{2,4}(?=\\?[\"'])"
_CAPITALISED = r"(?: [A-Z0-9(&][^\\/:*?\"<>|\s]{0,80}){0,6}"
_FOLDER = rf"(?:Documents and Settings|[^\\/:*?\"<>|\s]{{1,255}}{_CAPITALISED})\\{{1,2}}"
_FILE = r"[^\\/:*?\"<>|\s.,;]{1,80}(?: [^\\/:*?\"<>|\s.,;]{1,80}){0,2}\.[a-z0-9]{2,4}(?![\w.])"
_WINDOWS_PATH = re.compile(
    rf":\\{{1,2}}(?:{_QUOTED}{_QUOTED_END}|(?:{_FOLDER}){{0,30}}(?:{_FILE})?)"
)
_QUOTED_URL = re.compile(r"\"([a-z][a-z+.-]{1,19}://[^\"\s]{1,2048})(?=\")", re.IGNORECASE)
_AUTHORITY = re.compile(r"(?:NT (?:AUTHORITY|SERVICE)|Window Manager|Font Driver Host)\\")
_RFC5424 = re.compile(r"<(?<![^\n]<)\d{1,3}>1 (\S{1,64}) (\S{1,255}) (\S{1,48}) (\S{1,128}) ")
_TCPDUMP = re.compile(r"(\d{1,3}(?:\.\d{1,3}){3})\.(\d{1,5})(?= > |: )", re.ASCII)
_PIECE = re.compile(r"[^\s&?=(){}\[\]]+")


def split_chunks(text: str) -> Iterable[str]:
    """Split a long text between lines to read it in bounded memory; a very long line, anywhere."""
    return (text,) if len(text) <= _PART else _split_long(text)


def _split_long(text: str) -> Iterator[str]:
    begin = 0
    while len(text) - begin > _PART:
        end = text.rfind("\n", begin, begin + _PART) + 1 or begin + _PART
        yield text[begin:end]
        begin = end
    yield text[begin:]


def split_words(text: str) -> list[str]:
    """Return the words of a text for `read_words`, none longer than WORD_LIMIT."""
    prepared = _kept_together(_as_others_write(text))
    for delimiter in _DELIMITERS:
        if delimiter in prepared:
            prepared = prepared.replace(delimiter, " ")
    words = prepared.split()
    if not prepared.isascii():
        words = [word if word.isascii() else word.translate(_GIVE_BACK) for word in words]
    if len(text) > WORD_LIMIT and max(map(len, words), default=0) > WORD_LIMIT:
        words = [piece for word in words for piece in _pieces(word)]
    return words


def _as_others_write(text: str) -> str:
    """Convert rare notations into common ones."""
    if ">1 " in text:  # an RFC 5424 header, into RFC 3164
        text = _RFC5424.sub(r"\1 \2 \3[\4]: ", text)
    if " > " in text:  # a port of tcpdump, after a dot
        text = _TCPDUMP.sub(r"\1:\2", text)
    if "[" in text or "(" in text or "{" in text:
        text = join_defanged(text)
    return text


def _kept_together(text: str) -> str:
    """Replace the delimiters in paths, quoted URLs and known authorities with placeholders."""
    if "\\" in text:
        if ":\\" in text:
            text = _WINDOWS_PATH.sub(_keep, text)
        if "NT " in text or " Manager\\" in text or " Host\\" in text:
            text = _AUTHORITY.sub(_keep, text)
    if "://" in text and '"' in text:
        text = _QUOTED_URL.sub(_keep_url, text)
    return text


def _keep(found: re.Match[str]) -> str:
    return _protect(found[0])


def _keep_url(found: re.Match[str]) -> str:
    return f'"{_protect(found[1])}'


def _protect(text: str) -> str:
    for delimiter, kept in _KEPT.items():
        if delimiter in text:  # rarely, and str.translate would look at each character
            text = text.replace(delimiter, kept)
    return text


def _pieces(word: str) -> list[str]:
    """Split an overlong word where values may begin; pieces that are still too long are dropped."""
    if len(word) <= WORD_LIMIT:
        return [word]
    return [piece for piece in _PIECE.findall(word) if len(piece) <= WORD_LIMIT]

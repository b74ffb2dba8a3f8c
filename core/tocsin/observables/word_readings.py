"""Readings of single words of a text."""

from __future__ import annotations

import re
from enum import StrEnum, auto
from functools import lru_cache
from typing import Literal, NamedTuple

from tocsin.model import Entity, EntityKind
from tocsin.observables.defanged import refang_word
from tocsin.observables.field_semantics import FieldMeaning, classify_field
from tocsin.observables.results import NOTHING, Finds, make_finds
from tocsin.observables.shapes import parse_ip
from tocsin.observables.values import blank_dull_words, read_alphanumeric, read_value
from tocsin.observables.vocabulary import CUES, IDENTIFIER_WORDS, METHODS, MONTHS, VERSION_WORDS

WORD_LIMIT = 2_048
"""Length of the longest word that is read."""

_OFTEN_NEW = re.compile(
    r"(?P<tag>[a-z_][\w./-]{0,63})\[(?:\d{1,10}|-)\]:"
    r"|[\[({]?(?P<ip>\d{1,3}(?:\.\d{1,3}){3})(?:[:#]\d{1,5}|/\d{3,5})?[\])},.:]*",
    re.ASCII | re.IGNORECASE,
)
"""Words that differ from line to line by a process ID or a port."""

_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?", re.ASCII)
_OPENERS = "([{*!?,;&#"
_CLOSERS = ")]}*!?.,;:&="


class WordRole(StrEnum):
    """The role of a word for its neighbors."""

    KEY = auto()  # the next word is the value of a field with the meaning `meaning`
    KEY_OF_TWO = auto()  # the same, but the word before belongs to the field name
    KEY_BEFORE = auto()  # the same, but the word before is the field name
    CUE = auto()  # the next word may be the name of a `what`
    TAG = auto()  # the program `what` and its process ID in syslog
    MONTH = auto()  # in a syslog line, the day, the time, the host and the program follow
    MOMENT = auto()  # a date and time; in some syslog lines, the host and the program follow
    DENIAL = auto()  # the next word is not of the kind `what`


class WordReading(NamedTuple):
    """The finds in a word, and its role for its neighbors."""

    found: Finds = NOTHING
    role: WordRole | None = None
    what: str = ""
    meaning: FieldMeaning | None = None


Reading = WordReading | Literal[False] | None
"""False for a word that was read and means nothing, None for a word that is not worth reading."""

_OF_MOMENTS = WordReading(role=WordRole.MOMENT)
_OF_WORDS = {
    **{cue: WordReading(role=WordRole.CUE, what=cue) for cue in CUES},
    **{word: WordReading(role=WordRole.DENIAL, what=EntityKind.IP) for word in VERSION_WORDS},
    **{word.lower(): WordReading(role=WordRole.DENIAL, what=EntityKind.FILE) for word in METHODS},
    **{month.lower(): WordReading(role=WordRole.MONTH) for month in MONTHS},
    **{
        word: WordReading(role=WordRole.DENIAL, what=EntityKind.FILE_HASH)
        for word in IDENTIFIER_WORDS
    },
}


def read_words(words: list[str]) -> list[Reading]:
    """Return the reading of each word; False or None for words without meaning."""
    return _cache.read(words)


class _ReadingCache:
    """Cache of readings, since words recur in texts. It is emptied when it gets too large.

    Words are read in bulk, since a call for each word would take most of the time.
    """

    def __init__(self) -> None:
        self._readings: dict[str, WordReading | Literal[False]] = {}
        self._room = _ROOM

    def read(self, words: list[str]) -> list[Reading]:
        readings = self._readings
        known: list[Reading] = list(map(readings.get, words))
        new = [word for word, reading in zip(words, known, strict=True) if reading is None]
        worthwhile = blank_dull_words(new)
        if any(worthwhile):
            places = [at for at, reading in enumerate(known) if reading is None]
            for at, word in zip(places, worthwhile, strict=True):
                if word:
                    known[at] = readings[word] = _read(word) or False
                    self._room -= len(word) + _OVERHEAD
            if self._room < 0:
                self._readings = {}  # another thread may still read the old one
                self._room = _ROOM
        return known


_ROOM = 10_000_000
_OVERHEAD = 200  # approximate bytes of a word and its reading
_cache = _ReadingCache()


def _read(word: str) -> WordReading | None:
    if word.isalpha():
        return _OF_WORDS.get(word.lower())
    if _MOMENT.fullmatch(word):
        return _OF_MOMENTS
    if word in {":", "=", ":[", "=>"}:
        return WordReading(role=WordRole.KEY_BEFORE)
    often_new = _OFTEN_NEW.fullmatch(word)
    if often_new is not None:
        program, address = often_new.groups()
        return read_tag(program) if program else _read_ip(address)
    if word.isalnum():
        found = read_alphanumeric(word)
        return WordReading(found) if found else None
    return _read_marked(word)


@lru_cache(maxsize=1_024)
def read_tag(program: str) -> WordReading:
    """Return the reading of a program's tag in syslog."""
    return WordReading(make_finds(Entity(EntityKind.PROCESS, program)), WordRole.TAG, program)


@lru_cache(maxsize=4_096)
def _read_ip(text: str) -> WordReading | None:
    address = parse_ip(text)
    return WordReading(make_finds(Entity(EntityKind.IP, address))) if address else None


def _read_marked(word: str) -> WordReading | None:
    """Read a word that contains more than letters and digits."""
    refanged = refang_word(word)
    core = refanged.lstrip(_OPENERS).rstrip(_CLOSERS)
    found = read_value(core, certain=refanged != word)
    if word[-1] in ":=":
        meaning = classify_field(core)
        if core.lower() == "name":
            return WordReading(found, WordRole.KEY_OF_TWO, core)
        if meaning is not None:
            return WordReading(found, WordRole.KEY, meaning=meaning)
    return WordReading(found) if found else _OF_WORDS.get(core.lower())

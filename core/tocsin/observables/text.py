"""Entities in free text: log lines, reports, mails, messages of people."""

from __future__ import annotations

import re

from tocsin.observables.field_semantics import FieldMeaning, classify_field
from tocsin.observables.field_values import parse_field_value, parse_field_word
from tocsin.observables.results import DEFAULT_LIMIT, ObservableCollector, Observables
from tocsin.observables.tokenizer import split_chunks, split_words
from tocsin.observables.values import exclude_kinds
from tocsin.observables.vocabulary import (
    AFTER_A_USER,
    ARTICLES,
    BEFORE_FOR,
    BEFORE_USER,
    NOT_USERS,
)
from tocsin.observables.word_readings import WordReading, WordRole, read_tag, read_words

# Constants, since each access to a member through its enumeration is a slow call in Python 3.11.
_OPAQUE, _USER, _HOST = FieldMeaning.OPAQUE, FieldMeaning.USER, FieldMeaning.HOST
_KEY_OF_TWO, _TAG = WordRole.KEY_OF_TWO, WordRole.TAG

_USER_MARK = re.compile(r"[\\@_0-9]")
_CLOCK = re.compile(r"\d\d:\d\d:\d\d", re.ASCII)
_TRIM = "()[]{}*!?.,;:"


def find_observables(text: str, limit: int = DEFAULT_LIMIT) -> Observables:
    """Return at most `limit` entities and techniques in a text, including defanged ones.

    The running time is proportional to the length of the text.
    """
    collection = ObservableCollector(limit)
    collect_from_text(text, collection)
    return collection.observables()


def collect_from_text(text: str, collection: ObservableCollector) -> None:
    """Add the observables of a text, until the collector is full."""
    for part in split_chunks(text):
        _TextReader(split_words(part), collection).run()
        if collection.full:
            return


class _TextReader:
    """Reads the words of a text; the kind of a word may depend on its neighbors."""

    __slots__ = ("_collection", "_finds", "_next", "_readings", "_words")

    def __init__(self, words: list[str], collection: ObservableCollector) -> None:
        self._readings = [*read_words(words), None, None, None, None]
        # Neighbors of every word: an index before the first word is one of these four, too.
        self._words = [*words, "", "", "", ""]
        self._collection = collection
        self._finds = collection.finds
        self._next = 0

    def run(self) -> None:
        finds, limit = self._finds, self._collection.limit
        for at, reading in enumerate(self._readings):
            if not reading or at < self._next:
                continue
            if (role := reading.role) is None:
                finds |= reading.found
            else:
                _BY_ROLE[role](self, at, reading)
            if len(finds) > limit:
                return

    def _bare(self, at: int) -> str:
        return self._words[at].strip(_TRIM).lower()

    def _reading(self, at: int) -> WordReading:
        return self._readings[at] or _PLAIN

    def _read_key(self, at: int, reading: WordReading) -> None:
        in_a_sentence = self._bare(at - 1) in ARTICLES
        self._take_value(at, None if in_a_sentence else reading.meaning)

    def _read_key_of_two(self, at: int, reading: WordReading) -> None:
        self._take_value(at, classify_field(self._bare(at - 1) + reading.what))

    def _read_key_before(self, at: int, _reading: WordReading) -> None:
        name = self._words[at - 1]
        if self._words[at - 2] == ":{":  # JSON in JSON
            name = f"{self._words[at - 3]}.{name}"
        elif name.lower() == "name":
            name = self._bare(at - 2) + name
        self._take_value(at, classify_field(name))

    def _take_value(self, at: int, meaning: FieldMeaning | None) -> None:
        if meaning is None:
            self._finds |= self._reading(at).found
        elif meaning is _OPAQUE or not self._begins_a_field(at + 1):
            self._take(at + 1, meaning)

    def _begins_a_field(self, at: int) -> bool:
        """Return whether another field name is in the place of a value."""
        value, after = self._readings[at], self._readings[at + 1]
        if (value and value.role in _KEYS) or (after and after.role is _KEY_OF_TWO):
            return True
        return self._words[at] == self._words[at - 2]  # Account Name: Account Domain:

    def _take(self, at: int, meaning: FieldMeaning) -> None:
        """Read the value of a field."""
        found = parse_field_word(meaning, self._words[at])
        self._finds |= self._reading(at).found if found is None else found
        self._next = at + 1

    def _read_cue(self, at: int, reading: WordReading) -> None:
        cue = reading.what
        if cue == "user":
            if self._names_a_user(at + 1):
                self._take(at + 1, _USER)
        elif cue == "for":
            if self._bare(at - 1) in BEFORE_FOR and self._bare(at + 1) not in NOT_USERS:
                self._take(at + 1, _USER)
        elif _looks_like_a_host(cue, self._words[at + 1].strip(_TRIM)):
            self._take(at + 1, _HOST)

    def _names_a_user(self, at: int) -> bool:
        """Return whether this is the name of a user, in a sentence with `user` before it."""
        name = self._bare(at).partition("(")[0]
        if name in NOT_USERS or self._reading(at).role in _KEYS:
            return False
        if _USER_MARK.search(name):
            return True
        return (
            self._bare(at - 2) in BEFORE_USER
            or self._bare(at + 1) in AFTER_A_USER
            or bool(self._reading(at + 1).found)
        )

    def _read_month(self, at: int, _reading: WordReading) -> None:
        """Read the header of a syslog line (RFC 3164): a day, a time, a host and a program."""
        tag = self._words[at + 4]
        if tag.endswith(":") and _CLOCK.match(self._words[at + 2]):
            self._read_log_host(at + 3)
            if self._reading(at + 4).role is not _TAG:
                self._read_tag(at + 4, read_tag(tag[:-1]))

    def _read_moment(self, at: int, _reading: WordReading) -> None:
        """Read such a header with an RFC 3339 date."""
        if self._reading(at + 2).role is _TAG:
            self._read_log_host(at + 1)

    def _read_log_host(self, at: int) -> None:
        self._finds |= parse_field_value(_HOST, self._words[at]) or self._reading(at).found
        self._next = at + 1

    def _read_tag(self, at: int, reading: WordReading) -> None:
        if reading.what != "kernel":
            self._finds |= reading.found
        self._next = at + 1
        if reading.what == "sudo" and self._words[at + 2] == ":":
            self._take(at + 1, _USER)

    def _read_denial(self, at: int, reading: WordReading) -> None:
        """Skip versions, commits, and paths of a web server."""
        following = self._reading(at + 1)
        if following.found and following.role is None:
            self._finds |= exclude_kinds(following.found, reading.what)
            self._next = at + 2


_PLAIN = WordReading()
_KEYS = frozenset({WordRole.KEY, WordRole.KEY_OF_TWO, WordRole.KEY_BEFORE})
_BY_ROLE = {
    WordRole.KEY: _TextReader._read_key,  # noqa: SLF001 # the class's own
    WordRole.KEY_OF_TWO: _TextReader._read_key_of_two,  # noqa: SLF001
    WordRole.KEY_BEFORE: _TextReader._read_key_before,  # noqa: SLF001
    WordRole.CUE: _TextReader._read_cue,  # noqa: SLF001
    WordRole.MONTH: _TextReader._read_month,  # noqa: SLF001
    WordRole.MOMENT: _TextReader._read_moment,  # noqa: SLF001
    WordRole.TAG: _TextReader._read_tag,  # noqa: SLF001
    WordRole.DENIAL: _TextReader._read_denial,  # noqa: SLF001
}


def _looks_like_a_host(cue: str, word: str) -> bool:
    """Return whether a word is more likely a machine's name than a word of a language."""
    marks = "-0123456789." if cue == "hostname" else "-0123456789"
    return word[:1].isalnum() and any(mark in word for mark in marks) and not word.isdigit()

"""Entities in free text: log lines, reports, mails, what people write."""

from __future__ import annotations

import re

from tocsin.model import Entity, EntityKind
from tocsin.observables.field_values import finds_in
from tocsin.observables.found import DEFAULT_LIMIT, Collection, Observables, finds_of
from tocsin.observables.keys import Meaning, meaning_of
from tocsin.observables.splitting import parts_of, words_of
from tocsin.observables.values import without
from tocsin.observables.vocabulary import (
    AFTER_A_USER,
    ARTICLES,
    BEFORE_FOR,
    BEFORE_USER,
    NOT_USERS,
)
from tocsin.observables.words import Reading, Role, read

_CLOCK = re.compile(r"\d\d:\d\d:\d\d", re.ASCII)
_MARGIN = [""] * 4  # so that every word has neighbours
_TRIM = "()[]{}*!?.,;:"


def find_observables(text: str, limit: int = DEFAULT_LIMIT) -> Observables:
    """Return the entities and techniques in a text, defanged ones too; at most `limit` of them.

    The time that it takes grows with the length of the text and with nothing else.
    """
    collection = Collection(limit)
    collect_from_text(text, collection)
    return collection.observables()


def collect_from_text(text: str, collection: Collection) -> None:
    """Add what a text holds, until the collection is full."""
    for part in parts_of(text):
        _Walk(words_of(part), collection).run()
        if collection.full:
            return


class _Walk:
    """Goes through the words of a text; what a word is may stand in the words around it."""

    def __init__(self, words: list[str], collection: Collection) -> None:
        self._words = [*_MARGIN, *words, *_MARGIN]
        self._readings = read(self._words)
        self._collection = collection
        self._finds = collection.finds
        self._next = 0

    def run(self) -> None:
        finds, limit = self._finds, self._collection.limit
        for at, reading in enumerate(self._readings):
            if reading is None or at < self._next:
                continue
            if reading.role is None:
                finds |= reading.found
            else:
                _BY_ROLE[reading.role](self, at, reading)
            if len(finds) > limit:
                return

    def _bare(self, at: int) -> str:
        return self._words[at].strip(_TRIM).lower()

    def _reading(self, at: int) -> Reading:
        return self._readings[at] or _PLAIN

    def _read_key(self, at: int, reading: Reading) -> None:
        in_a_sentence = self._bare(at - 1) in ARTICLES
        self._take_value(at, None if in_a_sentence else Meaning(reading.what))

    def _read_key_of_two(self, at: int, reading: Reading) -> None:
        self._take_value(at, meaning_of(self._bare(at - 1) + reading.what))

    def _read_key_before(self, at: int, _reading: Reading) -> None:
        name = self._words[at - 1]
        if self._words[at - 2] == ":{":  # JSON in JSON
            name = f"{self._words[at - 3]}.{name}"
        elif name.lower() == "name":
            name = self._bare(at - 2) + name
        self._take_value(at, meaning_of(name))

    def _take_value(self, at: int, meaning: Meaning | None) -> None:
        if meaning is None:
            self._finds |= self._reading(at).found
        elif meaning is Meaning.OPAQUE or not self._begins_a_field(at + 1):
            self._take(at + 1, meaning)

    def _begins_a_field(self, at: int) -> bool:
        """Return whether there is the name of another field where a value should be."""
        if self._reading(at).role in _KEYS or self._reading(at + 1).role is Role.KEY_OF_TWO:
            return True
        return self._words[at] == self._words[at - 2]  # Account Name: Account Domain:

    def _take(self, at: int, meaning: Meaning) -> None:
        """Read the value of a field."""
        value = self._words[at].strip("()[]{},;*").partition("(")[0].rstrip(".:?!")
        found = finds_in(meaning, value)
        self._finds |= self._reading(at).found if found is None else found
        self._next = at + 1

    def _read_cue(self, at: int, reading: Reading) -> None:
        cue = reading.what
        if cue == "user":
            if self._names_a_user(at + 1):
                self._take(at + 1, Meaning.USER)
        elif cue == "for":
            if self._bare(at - 1) in BEFORE_FOR and self._bare(at + 1) not in NOT_USERS:
                self._take(at + 1, Meaning.USER)
        elif _looks_like_a_host(cue, self._words[at + 1].strip(_TRIM)):
            self._take(at + 1, Meaning.HOST)

    def _names_a_user(self, at: int) -> bool:
        """Return whether a user's name stands here, in a sentence with `user` before it."""
        name = self._bare(at).partition("(")[0]
        if name in NOT_USERS or self._reading(at).role in _KEYS:
            return False
        if any(mark in name for mark in "\\@_0123456789"):
            return True
        return (
            self._bare(at - 2) in BEFORE_USER
            or self._bare(at + 1) in AFTER_A_USER
            or bool(self._reading(at + 1).found)
        )

    def _read_month(self, at: int, _reading: Reading) -> None:
        """Read the header of a syslog line (RFC 3164): a day, a time, a host and a program."""
        tag = self._words[at + 4]
        if tag.endswith(":") and _CLOCK.match(self._words[at + 2]):
            self._read_log_host(at + 3)
            if self._reading(at + 4).role is not Role.TAG:
                self._read_program(at + 4, tag[:-1])

    def _read_moment(self, at: int, _reading: Reading) -> None:
        """Read such a header with a date as RFC 3339 has it."""
        if self._reading(at + 2).role is Role.TAG:
            self._read_log_host(at + 1)

    def _read_log_host(self, at: int) -> None:
        self._finds |= finds_in(Meaning.HOST, self._words[at]) or self._reading(at).found
        self._next = at + 1

    def _read_tag(self, at: int, reading: Reading) -> None:
        self._read_program(at, reading.what)

    def _read_program(self, at: int, name: str) -> None:
        if name != "kernel":
            self._finds |= finds_of(Entity(EntityKind.PROCESS, name))
        self._next = at + 1
        if name == "sudo" and self._words[at + 2] == ":":
            self._take(at + 1, Meaning.USER)

    def _read_denial(self, at: int, reading: Reading) -> None:
        """Leave out what is a version, a commit, or a path of a web server."""
        following = self._reading(at + 1)
        if following.found and following.role is None:
            self._finds |= without(following.found, reading.what)
            self._next = at + 2


_PLAIN = Reading()
_KEYS = frozenset({Role.KEY, Role.KEY_OF_TWO, Role.KEY_BEFORE})
_BY_ROLE = {
    Role.KEY: _Walk._read_key,  # noqa: SLF001 # the class's own
    Role.KEY_OF_TWO: _Walk._read_key_of_two,  # noqa: SLF001
    Role.KEY_BEFORE: _Walk._read_key_before,  # noqa: SLF001
    Role.CUE: _Walk._read_cue,  # noqa: SLF001
    Role.MONTH: _Walk._read_month,  # noqa: SLF001
    Role.MOMENT: _Walk._read_moment,  # noqa: SLF001
    Role.TAG: _Walk._read_tag,  # noqa: SLF001
    Role.DENIAL: _Walk._read_denial,  # noqa: SLF001
}


def _looks_like_a_host(cue: str, word: str) -> bool:
    """Return whether a word is more likely a machine's name than one of a language."""
    marks = "-0123456789." if cue == "hostname" else "-0123456789"
    return word[:1].isalnum() and any(mark in word for mark in marks) and not word.isdigit()

"""Removal of secrets from what a receiver answers, in any form in which it may repeat them."""

from __future__ import annotations

import html
import html.entities
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from typing import Any

from pydantic import BaseModel, SecretStr

HIDDEN = "[secret]"
SHORTEST = 4
"""Length of the shortest secret that is looked for; shorter ones occur in any text."""
SHORTEST_IN_IDS = 8
"""The same for identifiers and links, which later requests need unchanged."""
_SHORTEST_ENCODED = 6  # characters of Base64 or hexadecimal digits
_LONGEST_START = 64  # characters, of long keys in files
_DEEPEST = 31  # backslashes before a character: JSON in JSON, five times
_INVISIBLE = "\x00\u00ad\u200b-\u200d\u2060\ufeff"
# without any of them nothing is encoded character by character, or split
_MARKS = re.compile(rf"[\\%&+=\r\n{_INVISIBLE}]")
# also those of JSON, of mails in quoted-printable, and with indentation or quotation marks after it
_BREAK = rf"(?:(?:=?(?:\r\n?|\n)|(?:\\{{1,4}}r)?\\{{1,4}}n|[{_INVISIBLE}])[ \t>]{{0,8}})?+"
_PART = re.compile(r"\\*.", re.DOTALL)
_NAMED: dict[str, list[str]] = {}
"""Characters with names in HTML."""
for _name, _character in html.entities.html5.items():
    if _name.endswith(";") and _character.isprintable():
        _NAMED.setdefault(_character, []).append(f"&{_name}")
_SHORT_ESCAPES = {"\b": "b", "\t": "t", "\n": "n", "\f": "f", "\r": "r"}


def list_secret_values(value: Any) -> Iterator[str]:
    """Yield every secret in the settings of a plugin, at any depth."""
    match value:
        case SecretStr():
            yield value.get_secret_value()
        case BaseModel():
            for name in type(value).model_fields:
                yield from list_secret_values(getattr(value, name))
        case dict():
            for member in value.values():
                yield from list_secret_values(member)
        case list() | tuple() | set() | frozenset():
            for member in value:
                yield from list_secret_values(member)


class Redactor:
    """Replaces secrets, plain or encoded for JSON, URLs or HTML, each character in any of these.

    A secret may be split over lines, or by invisible characters.
    Secrets within Base64 or hexadecimal text count as well, such as the password of a header
    `Authorization: Basic`, and so does the first half of a secret: longer texts are cut. The time
    it takes grows with the length of the text alone, whatever the text is.
    """

    def __init__(self, secrets: Iterable[str], shortest: int = SHORTEST) -> None:
        self._shortest = shortest
        self._patterns: dict[str, _SecretPattern] = {}
        self.add(secrets)

    def add(self, secrets: Iterable[str]) -> None:
        """Replace these secrets as well from now on."""
        forms = {form for secret in secrets for form in (secret, secret.strip())}
        plain = {form for form in forms if len(form) >= self._shortest}
        encoded = {
            form
            for secret in plain
            for form in _list_encoded(secret.encode("utf-8", "surrogatepass"))
            if len(form) >= max(self._shortest, _SHORTEST_ENCODED)
        }
        known = self._patterns
        known |= {
            form: _SecretPattern(form, is_encoded=form not in plain)
            for form in plain | encoded
            if form not in known
        }
        order = sorted(known, key=lambda form: (len(form), form), reverse=True)
        self._patterns = {form: known[form] for form in order}

    def clean(self, text: str) -> str:
        """Return the text without the secrets."""
        for pattern in self._patterns.values():
            text = pattern.replace(text)
        return text

    def clean_bytes(self, content: bytes) -> bytes:
        """Return the bytes without the secrets; those that are not UTF-8 stay as they are."""
        if not self._patterns or not content:
            return content
        text = content.decode("utf-8", "surrogateescape")
        return self.clean(text).encode("utf-8", "surrogateescape")


def _list_encoded(secret: bytes) -> Iterator[str]:
    """Yield what is always found where the secret is part of Base64 or hexadecimal text."""
    for skipped in range(3):  # bytes before it in its first group of three
        digits = b64encode(bytes(skipped) + secret).decode()
        # characters that bytes before or after the secret take part in are left out
        first, last = -(-skipped * 8 // 6), (skipped + len(secret)) * 8 // 6
        yield digits[first:last]
    yield secret.hex()
    yield secret.hex().upper()


class _SecretPattern:
    """Finds one secret, by its first half."""

    def __init__(self, secret: str, *, is_encoded: bool) -> None:
        self._match_part = _match_digit if is_encoded else _match_part
        half = min(len(secret), max(SHORTEST_IN_IDS, (len(secret) + 1) // 2), _LONGEST_START)
        self._rest, self._start = _PART.findall(secret), ""
        while len(self._start) < half:
            self._start += self._rest.pop(0)
        # Base64 has two alphabets
        self._is_literal = not is_encoded or self._start.isalnum()

    @cached_property
    def _head(self) -> re.Pattern[str]:
        first, *others = _PART.findall(self._start)
        return re.compile(self._match_part(first) + "".join(map(self._match_next, others)))

    def _match_next(self, part: str) -> str:
        return _match_break(part) + self._match_part(part)

    def replace(self, text: str) -> str:
        """Return the text with `HIDDEN` in place of the secret."""
        if self._is_literal and self._start not in text and not _MARKS.search(text):
            return text
        kept: list[str] = []
        end = 0
        while found := self._head.search(text, end):
            kept += (text[end : found.start()], HIDDEN)
            end = found.end()
            for part in self._rest:
                if not (match := _compile(self._match_next(part)).match(text, end)):
                    break
                end = match.end()
        return "".join((*kept, text[end:]))


_compile = lru_cache(maxsize=1024)(re.compile)


def _match_break(part: str) -> str:
    """Return the pattern of a line break before a part, which takes no character of the part."""
    if part[0] in "\\> " or not part.isprintable():
        return ""
    return _BREAK.replace("=?", "", 1) if part == "=" else _BREAK


def _match_digit(digit: str) -> str:
    """Return the pattern of a character of Base64, in both alphabets (RFC 4648).

    Letters and digits are not encoded again.
    """
    return digit if digit.isalnum() else f"(?:{'-' if digit == '+' else '_'}|{_match_part(digit)})"


@lru_cache(maxsize=1024)
def _match_part(part: str) -> str:
    """Return the pattern of a character in all encodings, with the backslashes before it.

    The number of backslashes is bounded, and a run of them is never tried in two ways: a text of
    backslashes alone would take the square of its length, and a secret with some far more.
    """
    text = part.lstrip("\\")
    count = len(part) - len(text)
    character = _match_character(text, 0 if count else 1) if text else ""
    if not count:
        return character
    encoded = "|".join(_list_codes("\\", 1))
    run = rf"\\{{{count},{count * (_DEEPEST + 1)}}}+"
    return f"(?:(?:{encoded}){{{count}}}|{run}){character}"


def _match_character(character: str, least: int) -> str:
    """Return the pattern of a character; JSON has at `least` so many backslashes before it."""
    forms = list(_list_codes(character, least))
    escaped = character if character in '"/' else _SHORT_ESCAPES.get(character)
    if escaped:
        forms.append(_match_backslashes(least) + escaped)
    if character == " ":
        forms.append(r"\+")
    if character == "\n":
        forms += (r"\r\n", r"\\{1,4}r\\{1,4}n")
    forms += map(re.escape, _NAMED.get(character, ()))
    forms.append(re.escape(character))  # last: others may begin with the character itself
    return f"(?:{'|'.join(forms)})"


def _list_codes(character: str, least: int) -> Iterator[str]:
    """Yield patterns of the character as a number: in JSON, URLs and HTML."""
    units = character.encode("utf-16-be", "surrogatepass").hex()
    backslashes = _match_backslashes(least)
    starts = range(0, len(units), 4)
    yield "".join(f"(?:{backslashes}|%)u{_match_hex(units[start : start + 4])}" for start in starts)
    codes = [f"{byte:02x}" for byte in character.encode("utf-8", "surrogatepass")]
    yield "".join(f"(?:%(?:25){{0,{_DEEPEST}}}|=){_match_hex(code)}" for code in codes)
    yield "".join(f"{backslashes}x{_match_hex(code)}" for code in codes)
    number = ord(character)
    zeros = f"0{{0,{_DEEPEST}}}"
    digits = _match_hex(f"{number:x}")
    yield rf"{backslashes}(?:U{zeros}{digits}|u\{{{digits}\}})"
    yield rf"&\#(?:{zeros}{number}|[xX]{zeros}{digits});?"


def _match_backslashes(least: int) -> str:
    # a pattern that begins with a plain character is searched for much faster
    rest = rf"\\{{0,{_DEEPEST - least}}}+"
    return "\\\\" * least + rest


def _match_hex(digits: str) -> str:
    return "".join(f"[{each}{each.upper()}]" if each.isalpha() else each for each in digits)

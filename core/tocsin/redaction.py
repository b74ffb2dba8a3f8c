"""Removal of secrets from what a receiver answers, in any form in which it may repeat them."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from pydantic import BaseModel, SecretStr

HIDDEN = "[secret]"
SHORTEST = 4
"""Length of the shortest secret that is looked for; shorter ones occur in any text."""
SHORTEST_IN_IDS = 8
"""The same for identifiers and links, which later requests need unchanged."""
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

    The beginning of a secret counts as well, if it is half of it: longer texts are cut.
    """

    def __init__(self, secrets: Iterable[str], shortest: int = SHORTEST) -> None:
        forms = {form for secret in secrets for form in (secret, secret.strip())}
        found = sorted((form for form in forms if len(form) >= shortest), key=len, reverse=True)
        self._secrets = [_SecretPattern(secret) for secret in found]

    def clean(self, text: str) -> str:
        """Return the text without the secrets."""
        for secret in self._secrets:
            text = secret.replace(text)
        return text

    def clean_bytes(self, content: bytes) -> bytes:
        """Return the bytes without the secrets; those that are not UTF-8 stay as they are."""
        if not self._secrets or not content:
            return content
        text = content.decode("utf-8", "surrogateescape")
        return self.clean(text).encode("utf-8", "surrogateescape")


class _SecretPattern:
    """Finds one secret, by its first half."""

    def __init__(self, secret: str) -> None:
        half = min(len(secret), max(SHORTEST_IN_IDS, (len(secret) + 1) // 2))
        self._head = re.compile("".join(map(_match_character, secret[:half])))
        self._rest = [re.compile(_match_character(character)) for character in secret[half:]]

    def replace(self, text: str) -> str:
        """Return the text with `HIDDEN` in place of the secret."""
        kept: list[str] = []
        end = 0
        while found := self._head.search(text, end):
            kept += (text[end : found.start()], HIDDEN)
            end = found.end()
            for character in self._rest:
                if not (match := character.match(text, end)):
                    break
                end = match.end()
        return "".join((*kept, text[end:]))


@lru_cache(maxsize=1024)
def _match_character(character: str) -> str:
    """Return the pattern of a character in all encodings, those of JSON applied repeatedly too."""
    units = character.encode("utf-16-be", "surrogatepass").hex()
    in_json = "".join(rf"\\+u{units[start : start + 4]}" for start in range(0, len(units), 4))
    in_url = "".join(f"%(?:25)*{byte:02x}" for byte in character.encode("utf-8", "surrogatepass"))
    in_html = rf"&\#(?:0*{ord(character)}|x0*{ord(character):x});?"
    # the encoded forms first: some begin with the character itself
    forms = [f"(?i:{in_json}|{in_url}|{in_html})"]
    if character in '"/':
        forms.append(rf"\\+{character}")
    elif character == "\\":
        forms.append(r"\\+")
    elif character in _SHORT_ESCAPES:
        forms.append(rf"\\+{_SHORT_ESCAPES[character]}")
    elif character == " ":
        forms.append(r"\+")
    if (named := html.escape(character)) != character:
        forms.append(re.escape(named))
    forms.append(re.escape(character))
    return f"(?:{'|'.join(forms)})"

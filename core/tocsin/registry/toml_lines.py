"""Line numbers of the keys in a TOML document."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping

_SPACE = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_HEADER = re.compile(r"\[\[?[ \t]*")
_KEY = re.compile(r"""[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'""")
_DOT = re.compile(r"[ \t]*\.[ \t]*")
_STRING = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*"{3,5}'
    r"|'''(?:[^']|'(?!''))*'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'",
    re.DOTALL,
)
_PLAIN = re.compile(r"[^,\]}\s#]+(?: \d[^,\]}\s#]*)?")  # a date and a time may have a space


class KeyLines:
    """The lines of the keys in a document that tomllib accepts."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._lines: dict[str, int] = {}
        self._parse()

    def find(self, key: str) -> int | None:
        """Return the line of a key such as `destinations.soc.url`, or of the nearest above it."""
        while key:
            if key in self._lines:
                return self._lines[key]
            key = key.rpartition(".")[0]
        return None

    def _parse(self) -> None:
        table: tuple[str, ...] = ()
        counts: dict[tuple[str, ...], int] = {}
        self._skip(_SPACE)
        while self._at < len(self._text):
            if header := _HEADER.match(self._text, self._at):
                self._at = header.end()
                table = self._read_key(())
                if header[0].startswith("[["):
                    counts[table] = counts.get(table, -1) + 1
                    table = (*table, str(counts[table]))
                self._note(table)
                self._at = self._text.index("]", self._at) + header[0].count("[")
            else:
                self._parse_pair(table)
            self._skip(_SPACE)

    def _parse_pair(self, table: tuple[str, ...]) -> None:
        """Note a key, and skip its value."""
        path = self._read_key(table)
        self._at = self._text.index("=", self._at) + 1
        self._parse_value(path)

    def _parse_value(self, path: tuple[str, ...]) -> None:
        self._skip(_SPACE)
        match self._text[self._at]:
            case "{":
                self._parse_members(path, "}")
            case "[":
                self._parse_members(path, "]")
            case '"' | "'":
                self._skip(_STRING)
            case _:
                self._skip(_PLAIN)

    def _parse_members(self, path: tuple[str, ...], end: str) -> None:
        """Note the members of an inline table, or the items of an array."""
        self._at += 1
        self._skip(_SPACE)
        number = 0
        while self._text[self._at] != end:
            if end == "}":
                self._parse_pair(path)
            else:
                self._note((*path, str(number)))
                self._parse_value((*path, str(number)))
            number += 1
            self._skip(_SPACE)
            self._at += self._text[self._at] == ","
            self._skip(_SPACE)
        self._at += 1

    def _read_key(self, table: tuple[str, ...]) -> tuple[str, ...]:
        """Return the path of a key, which may have dots, and note each part."""
        path = table
        while part := _KEY.match(self._text, self._at):
            path = (*path, _unquote(part[0]))
            self._note(path)
            self._at = part.end()
            if not (dot := _DOT.match(self._text, self._at)):
                break
            self._at = dot.end()
        return path

    def _note(self, path: tuple[str, ...]) -> None:
        line = self._text.count("\n", 0, self._at) + 1
        self._lines.setdefault(".".join(path), line)

    def _skip(self, pattern: re.Pattern[str]) -> None:
        if found := pattern.match(self._text, self._at):
            self._at = found.end()


def _unquote(key: str) -> str:
    if key[0] not in "\"'":
        return key
    content: Mapping[str, str] = tomllib.loads(f"key = {key}")
    return content["key"]

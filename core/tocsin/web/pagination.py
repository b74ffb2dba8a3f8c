"""Cursors of paginated lists, opaque to callers."""

from __future__ import annotations

import binascii
import re
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Protocol

import orjson
from yarl import URL

from tocsin.model import Json
from tocsin.web.context import RequestContext, Response

_LONGEST = 160
_NUMBER = rb"0|[1-9][0-9]{0,17}"
_PLAIN = re.compile(rb"(?:a(%b)|d(%b)\.(%b))" % (_NUMBER, _NUMBER, _NUMBER))


@dataclass(frozen=True, slots=True)
class ChangeCursor:
    """A position in the sequence of changes, and the direction to read in."""

    START: ClassVar[ChangeCursor]

    change: int
    resume: int | None = None
    """The newest change when the first page was read; None when reading in order."""

    @property
    def ascending(self) -> bool:
        """Whether the cursor reads the changes in order."""
        return self.resume is None

    @property
    def before(self) -> int | None:
        """The change before which to read, None when reading in order."""
        return None if self.ascending else self.change

    @property
    def after(self) -> int | None:
        """The change after which to read, None when reading the newest first."""
        return self.change if self.ascending else None

    def encode(self) -> str:
        """Return the text for callers."""
        plain = f"a{self.change}" if self.ascending else f"d{self.change}.{self.resume}"
        return urlsafe_b64encode(plain.encode()).decode().rstrip("=")

    @classmethod
    def decode(cls, text: str) -> ChangeCursor:
        """Return the cursor from the text that `encode` returned; raises ValueError."""
        match = _PLAIN.fullmatch(_decode(text))
        if match is None:
            raise ValueError("use an unchanged cursor from an earlier response")
        return cls(int(match[1])) if match[1] else cls(int(match[2]), int(match[3]))

    @classmethod
    def decode_resume(cls, text: str) -> ChangeCursor:
        """Return the position after which to list changes in order; the start if empty."""
        cursor = cls.decode(text) if text else cls.START
        if not cursor.ascending:
            raise ValueError("use a resume_cursor, not a next_cursor")
        return cursor


ChangeCursor.START = ChangeCursor(0)

# A record is identified by a number, a ULID, or a name after a tilde
_PAGE = re.compile(rb"([a-z]):([0-9]{1,18}|[0-9A-Z]{26}|~[0-9A-Za-z:._-]{1,100})")


@dataclass(frozen=True, slots=True)
class PageCursor:
    """Position in a list of records: before this identifier, or after this name."""

    kind: str
    """One letter that identifies the list."""
    before: str

    @property
    def number(self) -> int:
        """The record's identifier as a number; 0 if the identifier is not a number."""
        return int(self.before) if self.before.isdigit() else 0

    @property
    def name(self) -> str:
        """The name of a record that is identified by its name."""
        return self.before.removeprefix("~")

    @classmethod
    def at_name(cls, kind: str, name: str) -> PageCursor:
        """Return the position of a record that is identified by its name."""
        return cls(kind, f"~{name}")

    def encode(self) -> str:
        """Return the text for callers."""
        return urlsafe_b64encode(f"{self.kind}:{self.before}".encode()).decode().rstrip("=")

    @classmethod
    def decode(cls, kind: str, text: str) -> PageCursor:
        """Return the cursor from a text that `encode` returned for the list; raises ValueError."""
        match = _PAGE.fullmatch(_decode(text))
        if match is None or match[1].decode() != kind:
            raise ValueError("use the unchanged next_cursor of an earlier response")
        return cls(kind, match[2].decode())


@dataclass(frozen=True, slots=True)
class CompositeCursor:
    """Position in a list, made up of several texts and numbers."""

    kind: str
    """One letter that identifies the list."""
    parts: tuple[str | int, ...]

    def encode(self) -> str:
        """Return the text for callers."""
        return urlsafe_b64encode(orjson.dumps([self.kind, *self.parts])).decode().rstrip("=")

    @classmethod
    def decode(cls, kind: str, wanted: Sequence[type[str] | range], text: str) -> CompositeCursor:
        """Return the cursor from a text that `encode` returned; raises ValueError.

        `wanted` contains `str` for each text, and the range of valid values for each number.
        """
        try:
            found, *parts = orjson.loads(_decode(text, _LONGEST_COMPOSITE))
        except (ValueError, TypeError):
            found, parts = None, []
        if found != kind or len(parts) != len(wanted) or not all(map(_fits, parts, wanted)):
            raise ValueError("use the unchanged next_cursor of an earlier response")
        return cls(kind, tuple(parts))


_LONGEST_COMPOSITE = 8_000


def _fits(part: object, wanted: type[str] | range) -> bool:
    if isinstance(wanted, range):
        return type(part) is int and part in wanted
    return isinstance(part, str) and "\0" not in part  # which PostgreSQL does not take


def _decode(text: str, longest: int = _LONGEST) -> bytes:
    if len(text) > longest or not text.isascii():
        return b""
    try:
        return b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except binascii.Error:
        return b""


class CountedPage(Protocol):
    """One page of a list that is counted up to a limit."""

    @property
    def total(self) -> int:
        """Number of records, up to the limit."""

    @property
    def exact(self) -> bool:
        """False if there are more records than the limit."""


def total_fields(page: CountedPage) -> dict[str, Json]:
    """Return the members of a page that contain the number of records."""
    return {"total": page.total, "total_relation": "eq" if page.exact else "gte"}


def make_next_link(public_url: str, path_and_query: str, cursor: str) -> str:
    """Return the header field with the link to the next page of a list (RFC 8288).

    Same as `RequestContext.next_link`, but only for a list whose query contains no free text.
    """
    before, after = _split_next_url(path_and_query)
    return f'<{public_url}{before}{cursor}{after}>; rel="next"'


_PLACEHOLDER = "~"  # which no cursor and no other parameter of such a query holds


@lru_cache(maxsize=256)
def _split_next_url(path_and_query: str) -> tuple[str, str]:
    """Return what is before and after the cursor in the URL of the next page."""
    url = URL(path_and_query, encoded=True).without_query_params("changed_after")
    before, _, after = str(url.update_query(cursor=_PLACEHOLDER)).partition(_PLACEHOLDER)
    return before, after


def page_response(
    call: RequestContext, content: dict[str, Any], following: PageCursor | CompositeCursor | None
) -> Response:
    """Return the page with `next_cursor` and `Link` (RFC 8288) for the next one."""
    if following is None:
        return Response(content | {"next_cursor": None})
    cursor = following.encode()
    return Response(content | {"next_cursor": cursor}, {"Link": call.next_link(cursor)})

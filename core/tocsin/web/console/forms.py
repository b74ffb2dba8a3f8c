"""Form bodies, and number and timestamp fields; `sessions` protects forms against CSRF."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from urllib.parse import parse_qsl

from aiohttp import web

from tocsin.web.oauth_endpoint import FORM_MEDIA_TYPE
from tocsin.web.parsing import read_body
from tocsin.web.problems import ProblemError

_MOST_FIELDS = 200


class Form(dict[str, str]):
    """The fields of a form, with the first value of each.

    `several` contains all values.
    """

    def __init__(self, several: Mapping[str, list[str]]) -> None:
        super().__init__({name: values[0] for name, values in several.items()})
        self.several = several

    def text(self, name: str) -> str:
        """Return the stripped text of a field, empty if it is missing."""
        return self.get(name, "").strip()

    def given(self, *names: str) -> dict[str, str]:
        """Return the fields that are not empty."""
        return {name: text for name in names if (text := self.text(name))}

    def numbers(self, *names: str) -> dict[str, int | str]:
        """Return the numbers in the fields that are not empty, as `to_number` does."""
        return {name: to_number(text) for name, text in self.given(*names).items()}


async def read_fields(request: web.Request) -> Form:
    """Return the form of a request; raises ProblemError (400, 415) if it has none."""
    if request.content_type != FORM_MEDIA_TYPE:
        raise ProblemError(415, f"Send the form as {FORM_MEDIA_TYPE}.")
    try:
        text = (await read_body(request)).decode()
        pairs = parse_qsl(
            text, keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS
        )
    except ValueError:
        raise ProblemError(400, "The form is not valid UTF-8.") from None
    several: dict[str, list[str]] = {}
    for name, value in pairs:
        several.setdefault(name, []).append(value.replace("\r\n", "\n"))
    return Form(several)


_MOST_DIGITS = 9


def to_number(text: str) -> int | str:
    """Return the number in a field; return other text unchanged, for the API to reject."""
    is_number = text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS
    return int(text) if is_number else text


def to_utc(text: str) -> str:
    """Return a timestamp in UTC; return other text unchanged."""
    try:
        moment = datetime.fromisoformat(text)
        in_utc = moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)
    except (ValueError, OverflowError):  # the latter for years before 1 and after 9999
        return text
    return in_utc.replace(tzinfo=None).isoformat(timespec="seconds") + "Z"


def to_field(text: str) -> str:
    """Return a timestamp for a `datetime-local` field: in UTC, without its zone."""
    return to_utc(text).removesuffix("Z")

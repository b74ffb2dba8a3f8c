"""Formatting of untrusted text, times and numbers inside a line."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from tocsin.observables import defang

MAX_TEXT = 2_000  # characters of one text; the JSON report has the full text

# Control characters, lone surrogates, noncharacters, and overrides of the writing direction:
# Unicode Technical Report 36, section 3.2
_HIDDEN = re.compile(
    "[\0-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
_SLASHES = re.compile(r":?//+(?=[^\s/\]])")
_AT = re.compile(r"@(?!\])")
_DOT = re.compile(r"(?<=[\w-])\.(?=[^\W\d_]{2}|xn--)|(?<=www)\.(?!\])", re.IGNORECASE)


def clean_line(text: str) -> str:
    """Return `text` on one line, without invisible characters, and shortened if it is long."""
    return truncate(" ".join(_HIDDEN.sub("\N{REPLACEMENT CHARACTER}", text).split()), MAX_TEXT)


def clean_value(value: str) -> str:
    """Return a value without invisible characters, but with all of its spaces."""
    seen = _HIDDEN.sub("\N{REPLACEMENT CHARACTER}", value)
    return truncate(re.sub(r"\s", " ", seen).strip(), MAX_TEXT)


def truncate(text: str, most: int) -> str:
    """Return `text`, shortened with an ellipsis to `most` characters."""
    return text if len(text) <= most else text[: most - 1] + "…"


def defang_links(text: str) -> str:
    """Return `text` with links and mentions defanged.

    Addresses have the form that `defang` gives them: `hxxps[://]example[.]org/x` and
    `mail[@]example[.]org`. Other text that a program could mistake for an address is defanged too,
    such as `run[.]exe`.
    """
    return _DOT.sub("[.]", _AT.sub("[@]", _SLASHES.sub(r"[\g<0>]", defang(text))))


def format_time(moment: datetime) -> str:
    """Return a time to the second: `2026-11-21 05:33:01 UTC`."""
    return moment.astimezone(UTC).isoformat(" ", "seconds").replace("+00:00", " UTC")


def format_number(value: float) -> str:
    """Return a number with at most one decimal: `72`, `-4.5`."""
    return f"{round(value, 1) + 0.0:.1f}".removesuffix(".0")  # + 0.0: there is no -0


def format_signed(value: float) -> str:
    """Return a number with its sign: `+30`, `-4.5`."""
    return f"{round(value, 1) + 0.0:+.1f}".removesuffix(".0")


def format_count(count: int, one: str, several: str | None = None) -> str:
    """Return a number with its noun: `1 entity`, `5,000 entities`."""
    return f"{count:,} {one if count == 1 else several or one + 's'}"


def format_reference(reference: str) -> str:
    """Return a reference for display: `step 12` for `step:12`."""
    kind, _, name = reference.partition(":")
    return f"{kind} {name}" if kind and name else reference

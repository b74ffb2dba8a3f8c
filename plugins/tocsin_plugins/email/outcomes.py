"""Outcomes of recipients, written to and read from the stored response of an attempt.

A mail server responds for each recipient. The next attempt, on any node, finds these
outcomes in the attempt log and skips the recipients that earlier attempts settled.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Self

from tocsin_plugins.email.message import to_one_line

MAX_RESPONSE_SIZE = 16_000  # of the 16 KiB that are stored of a response
_SHORTEST = 20
_LINE = re.compile(r"(\S+@\S+): ([0-9]{3}) ?(.*)")
_LONGEST = 300
_HUNDRED = 100  # between classes of responses, RFC 5321 section 4.2.1
_TRY_AGAIN = 451


@dataclass(frozen=True, slots=True)
class RecipientOutcome:
    """Latest response of the server for one recipient."""

    status: int
    text: str
    of_content: bool = False
    """Whether the outcome concerns the mail itself, which is the same for all recipients."""

    @classmethod
    def of(cls, code: int, text: str, *, of_content: bool = False) -> Self:
        """Return the outcome; a response of an unknown class is transient."""
        known = code if code // _HUNDRED in (2, 4, 5) else _TRY_AGAIN
        return cls(known, to_one_line(text, _LONGEST), of_content)

    @property
    def has_it(self) -> bool:
        """Whether the server accepted the mail for this recipient."""
        return self.status // _HUNDRED == 2  # noqa: PLR2004 - accepted

    @property
    def is_final(self) -> bool:
        """Whether a retry would change nothing: accepted, or refused permanently."""
        return self.status // _HUNDRED in (2, 5)

    def __str__(self) -> str:
        """Return the server's response."""
        return f"{self.status} {self.text}".rstrip()


RecipientOutcomes = Mapping[str, RecipientOutcome]
"""Outcomes by address."""


def format_outcomes(outcomes: RecipientOutcomes) -> bytes:
    """Return a line per recipient, within the stored size of a response."""
    return "\n".join(_lines(outcomes)).encode()


def _lines(outcomes: RecipientOutcomes) -> Iterator[str]:
    names = sum(len(f"{address}: 250 \n".encode()) for address in outcomes)
    room = max(
        _SHORTEST, (MAX_RESPONSE_SIZE - names) // max(1, 4 * len(outcomes))
    )  # characters of 4 bytes
    for address, outcome in outcomes.items():
        yield f"{address}: {outcome.status} {to_one_line(outcome.text, room)}".rstrip()


def parse_accepted(answer: bytes) -> dict[str, RecipientOutcome]:
    """Return the recipients that accepted the mail, from the text of `format_outcomes`."""
    found = map(_LINE.fullmatch, answer.decode("utf-8", "replace").splitlines())
    outcomes = {line[1]: RecipientOutcome(int(line[2]), line[3]) for line in found if line}
    return {address: outcome for address, outcome in outcomes.items() if outcome.has_it}

"""What became of each recipient, told in the answer that is kept of an attempt, and read from it.

A mail server answers for each recipient by itself. What one attempt has settled is not repeated by
the next, on whichever node: the log of attempts is what remembers it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Self

from tocsin_plugins.email.message import to_one_line

MAX_RESPONSE_SIZE = 16_000  # of the 16 KiB that are kept of an answer
_SHORTEST = 20
_LINE = re.compile(r"(\S+@\S+): ([0-9]{3}) ?(.*)")
_LONGEST = 300
_HUNDRED = 100  # between the classes of answers, RFC 5321 section 4.2.1
_TRY_AGAIN = 451


@dataclass(frozen=True, slots=True)
class RecipientOutcome:
    """What the server said of one recipient last."""

    status: int
    text: str
    of_content: bool = False
    """Whether it was said of the mail itself, which all recipients share."""

    @classmethod
    def of(cls, code: int, text: str, *, of_content: bool = False) -> Self:
        """Return what was said; an answer of no known class is one to try again after."""
        known = code if code // _HUNDRED in (2, 4, 5) else _TRY_AGAIN
        return cls(known, to_one_line(text, _LONGEST), of_content)

    @property
    def has_it(self) -> bool:
        """Whether the server took the mail for this recipient."""
        return self.status // _HUNDRED == 2  # noqa: PLR2004 - taken

    @property
    def is_final(self) -> bool:
        """Whether trying again would change nothing: it was taken, or refused for good."""
        return self.status // _HUNDRED in (2, 5)

    def __str__(self) -> str:
        """Return what the server said."""
        return f"{self.status} {self.text}".rstrip()


RecipientOutcomes = Mapping[str, RecipientOutcome]
"""By the recipients' addresses."""


def format_outcomes(outcomes: RecipientOutcomes) -> bytes:
    """Return a line for each recipient, within what is kept of an answer."""
    return "\n".join(_lines(outcomes)).encode()


def _lines(outcomes: RecipientOutcomes) -> Iterator[str]:
    names = sum(len(f"{address}: 250 \n".encode()) for address in outcomes)
    room = max(
        _SHORTEST, (MAX_RESPONSE_SIZE - names) // max(1, 4 * len(outcomes))
    )  # characters of 4 bytes
    for address, outcome in outcomes.items():
        yield f"{address}: {outcome.status} {to_one_line(outcome.text, room)}".rstrip()


def parse_accepted(answer: bytes) -> dict[str, RecipientOutcome]:
    """Return who got the mail by an answer that `write` wrote; who did not is asked for again."""
    found = map(_LINE.fullmatch, answer.decode("utf-8", "replace").splitlines())
    told = {line[1]: RecipientOutcome(int(line[2]), line[3]) for line in found if line}
    return {address: outcome for address, outcome in told.items() if outcome.has_it}

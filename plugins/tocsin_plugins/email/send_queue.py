"""Deliveries in progress, with the outcome for each recipient."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field

from tocsin import Delivery, Misconfigured, PluginFailure, Receipt, Refused, TryLater
from tocsin_plugins.email.composer import DigestEntry
from tocsin_plugins.email.message import to_one_line
from tocsin_plugins.email.outcomes import RecipientOutcome, format_outcomes
from tocsin_plugins.email.threads import MailThread

_ACCEPTED = 250
_LONGEST = 700  # of the thousand characters that are stored of a reason


@dataclass(slots=True)
class SendTask:
    """One delivery for the duration of an attempt."""

    delivery: Delivery
    outcomes: dict[str, RecipientOutcome] = field(default_factory=dict)
    """Outcomes of earlier attempts, and of this one."""
    entry: DigestEntry | None = None
    thread: MailThread | None = None
    failure: PluginFailure | None = None
    """Error that ended the attempt before every recipient was tried."""
    has_arrived: bool = False
    """Whether anyone got the mail in this attempt."""

    def has(self, address: str) -> bool:
        """Return whether a recipient has the mail."""
        return address in self.outcomes and self.outcomes[address].has_it

    def learn(self, outcomes: dict[str, RecipientOutcome]) -> None:
        """Add the outcomes for these recipients."""
        self.outcomes |= outcomes
        self.has_arrived |= any(outcome.has_it for outcome in outcomes.values())

    def result(self) -> Receipt | PluginFailure:
        """Return the result of the delivery: a receipt, or an exception to raise."""
        if self.failure is not None:
            return self._failed(self.failure)
        if self._those(lambda outcome: not outcome.is_final):
            return self._put_off()
        if not self._those(lambda outcome: outcome.has_it):
            return self._refused()
        thread = self.thread.encode() if self.thread else None
        return Receipt(status=_ACCEPTED, response=format_outcomes(self.outcomes), remote_id=thread)

    @property
    def refused(self) -> str:
        """Permanently refused recipients, with reasons; empty if there are none."""
        return _format_outcomes(
            self._those(lambda outcome: outcome.is_final and not outcome.has_it)
        )

    def _those(self, wanted: Callable[[RecipientOutcome], bool]) -> dict[str, RecipientOutcome]:
        return {address: outcome for address, outcome in self.outcomes.items() if wanted(outcome)}

    def _failed(self, failure: PluginFailure) -> PluginFailure:
        """Return the failure, which other tasks may share, with this task's outcomes."""
        own = copy(failure)
        if isinstance(own, TryLater | Refused):
            own.response = format_outcomes(self.outcomes)
        if isinstance(own, TryLater):
            own.partly = self.has_arrived
        return own

    def _put_off(self) -> TryLater:
        """Return a retry for deferred recipients; the others get the mail only once."""
        waiting = self._those(lambda outcome: not outcome.is_final)
        having = self._those(lambda outcome: outcome.has_it)
        parts = [
            f"deferred: {_format_outcomes(waiting)}",
            f"refused: {self.refused}" if self.refused else "",
        ]
        parts += [f"{len(having)} of {len(self.outcomes)} recipients already have the email"]
        return TryLater(
            "; ".join(filter(None, parts if having else parts[:2])),
            partly=bool(having),
            status=next(iter(waiting.values())).status,
            response=format_outcomes(self.outcomes),
        )

    def _refused(self) -> Refused:
        """Return the refusal: final for the content, otherwise until the recipients change."""
        last = next(iter(self.outcomes.values()))
        is_content = any(outcome.of_content for outcome in self.outcomes.values())
        kind = Refused if is_content else Misconfigured
        return kind(self.refused, status=last.status, response=format_outcomes(self.outcomes))


def _format_outcomes(outcomes: dict[str, RecipientOutcome]) -> str:
    return to_one_line(
        "; ".join(f"{address}: {outcome}" for address, outcome in outcomes.items()), _LONGEST
    )

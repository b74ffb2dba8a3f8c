"""Recommended actions, by rules; each names its subject and gives a reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tocsin import Action
from tocsin_plugins.investigator.assessment import Conclusion
from tocsin_plugins.investigator.report.actions.containment import (
    block,
    collect,
    isolate,
    reset,
    watch,
)
from tocsin_plugins.investigator.report.actions.follow_up import (
    ask_again,
    check_hosts,
    check_logons,
    clarify,
    close,
    patch,
    tune,
    watch_accounts,
)

__all__ = ["build_actions"]

_MOST = 20
_ADVICE: tuple[Callable[[Conclusion], Iterator[Action]], ...] = (
    isolate,
    reset,
    check_logons,
    block,
    patch,
    check_hosts,
    collect,
    watch_accounts,
    watch,
    tune,
    close,
    ask_again,
)


def build_actions(conclusion: Conclusion) -> tuple[Action, ...]:
    """Return the recommended actions, the urgent ones first, each once.

    Open incidents without an action get one to clarify them. None are recommended if part of the
    query was not understood, because they may be about what was not asked.
    """
    if conclusion.case.scope.doubts:
        return ()
    chosen: dict[str, Action] = {}
    for advise in _ADVICE:
        for action in advise(conclusion):
            chosen.setdefault(action.text, action)
    unclear = clarify(
        conclusion, {number for action in chosen.values() for number in _about(action)}
    )
    every = [*chosen.values(), *unclear]
    return tuple(sorted(every, key=lambda action: not action.urgent)[:_MOST])


def _about(action: Action) -> Iterator[int]:
    """Yield the incidents that an action is based on."""
    for reference in action.reason.evidence:
        kind, _, number = reference.partition(":")
        if kind == "incident":
            yield int(number)

"""Transitions that close Jira issues."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tocsin import Json, Misconfigured
from tocsin_plugins.ticketing.jira.options import JiraClosure


def build_transition(
    transitions: Sequence[Mapping[str, Any]], wishes: JiraClosure, issue: str
) -> dict[str, Json]:
    """Return the request body of the transition that closes an issue.

    Raises `Misconfigured` if there is no transition, or if it requires fields without a value.
    """
    chosen = next(
        (transition for transition in transitions if _closes_issue(transition, wishes.transition)),
        None,
    )
    if chosen is None:
        wanted = wishes.transition or "to a status in the category Done"
        known = ", ".join(str(transition.get("name")) for transition in transitions) or "none"
        raise Misconfigured(f"{issue} has no transition {wanted}; available: {known}")
    given = {"resolution": {"name": wishes.resolution}} if wishes.resolution else {}
    if missing := _missing_fields(chosen, given):
        names = ", ".join(missing)
        raise Misconfigured(
            f"closing {issue} with the transition {chosen.get('name')} requires {names}: remove "
            "them from the transition's screen, or set another transition in "
            "options.close_transition or options.close_as"
        )
    fields: dict[str, Json] = {"fields": given} if given else {}
    return {"transition": {"id": str(chosen.get("id"))}, **fields}


def _closes_issue(transition: Mapping[str, Any], name: str | None) -> bool:
    if name is not None:
        return str(transition.get("name")).casefold() == name.casefold()
    match transition:
        case {"to": {"statusCategory": {"key": "done"}}}:
            return True
    return False


def _missing_fields(transition: Mapping[str, Any], given: Mapping[str, Any]) -> list[str]:
    """Return the required fields on the transition's screen that do not have a value."""
    fields = transition.get("fields") or {}
    return [
        f"{field.get('name', name)} ({name})"
        for name, field in fields.items()
        if field.get("required") and not field.get("hasDefaultValue") and name not in given
    ]

"""Transitions that close Jira issues."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tocsin import Json, Misconfigured
from tocsin_plugins.ticketing.jira.options import JiraOptions


def build_transition(
    transitions: Sequence[Mapping[str, Any]], wishes: JiraOptions, issue: str
) -> dict[str, Json]:
    """Return the body of the transition that closes an issue.

    Raises `Misconfigured` where there is none, or where it wants fields that it is not given.
    """
    chosen = next(
        (
            transition
            for transition in transitions
            if _closes_issue(transition, wishes.close_transition)
        ),
        None,
    )
    if chosen is None:
        wanted = wishes.close_transition or "to a status of the category Done"
        known = ", ".join(str(transition.get("name")) for transition in transitions) or "none"
        raise Misconfigured(f"{issue} has no transition {wanted} now; it has: {known}")
    given = {"resolution": {"name": wishes.resolution}} if wishes.resolution else {}
    if missing := _missing_fields(chosen, given):
        names = ", ".join(missing)
        raise Misconfigured(
            f"closing {issue} by the transition {chosen.get('name')} needs {names}: take them off "
            "its screen, or name another transition in options.close_transition"
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
    """Return the fields that its screen requires and nobody fills in."""
    fields = transition.get("fields") or {}
    return [
        f"{field.get('name', name)} ({name})"
        for name, field in fields.items()
        if field.get("required") and not field.get("hasDefaultValue") and name not in given
    ]

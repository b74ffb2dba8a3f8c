"""What Jira's answers say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tocsin import Broken, Refused, parse_json

_SHOWN = 1_000


def explain_refusal(refused: Refused) -> Refused:
    """Return the same refusal, with Jira's reasons in place of the beginning of its answer."""
    reasons = "; ".join(_refusal_reasons(refused.response))[:_SHOWN]
    if not reasons:
        return refused
    words = f"{str(refused).partition(': ')[0]}: {reasons}"
    return Refused(words, status=refused.status, response=refused.response)


def issue_key(issue: dict[str, Any]) -> str:
    """Return what an issue is called, such as SEC-7."""
    key = issue.get("key")
    if isinstance(key, str) and key:
        return key
    raise Broken("Jira answered an issue without its key")


def _refusal_reasons(body: bytes) -> Iterator[str]:
    try:
        said = parse_json(body)
    except ValueError:
        return
    match said:
        case {"errorMessages": [*messages]}:
            yield from map(str, messages)
    match said:
        case {"errors": {**errors}}:
            yield from (f"{name}: {reason}" for name, reason in errors.items())

"""What is missing at a Zendesk, as far as it tells."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tocsin import TicketSettings
from tocsin_plugins.ticketing.answers import expect_identifier

_AGENTS = ("agent", "admin")


def find_problems(
    settings: TicketSettings,
    user: Mapping[str, Any],
    fields: Iterable[dict[str, Any]],
    group: int | None,
) -> Iterator[str]:
    """Yield what keeps this user from making tickets of this group, or from closing them."""
    if user.get("role") not in _AGENTS:
        yield f"{user.get('email') or 'nobody'} is no agent, and only an agent can do this"
    if group is None:
        yield f"project: there is no group {settings.project}"
    known = {expect_identifier(it): it for it in fields if it.get("active", True)}
    for name in settings.fields:
        if name.isdigit() and name not in known:
            yield f"fields.{name}: there is no such field"
    if settings.close_when is not None or settings.close_recovered:
        for number, field in known.items():
            if _is_required_field(field) and number not in settings.fields:
                yield f"the field {field.get('title')} is required to solve: give fields.{number}"


def _is_required_field(field: Mapping[str, Any]) -> bool:
    """Return whether a field has to be filled in that is none of Zendesk's own."""
    return bool(field.get("required") and field.get("removable"))

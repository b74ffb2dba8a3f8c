"""Every page and every action of the console."""

from __future__ import annotations

from tocsin.web.console.pages import ConsoleAction, ConsolePage, message_key
from tocsin.web.console.views import (
    api_clients,
    api_keys,
    audit,
    deliveries,
    destinations,
    graph,
    incidents,
    investigations,
    ledger,
    overview,
    plugins,
    providers,
    schedules,
    search,
)

_ROOMS = (
    overview,
    incidents,
    investigations,
    ledger,
    schedules,
    graph,
    search,
    deliveries,
    destinations,
    providers,
    api_keys,
    api_clients,
    plugins,
    audit,
)

PAGES: tuple[ConsolePage, ...] = tuple(page for room in _ROOMS for page in room.PAGES)
ACTIONS: tuple[ConsoleAction, ...] = tuple(action for room in _ROOMS for action in room.ACTIONS)
SAID: dict[str | None, str] = {message_key(action): action.said for action in ACTIONS}
"""What the next page tells of an action, by the word in its address."""

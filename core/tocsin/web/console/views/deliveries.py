"""Deliveries and replays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tocsin.delivery import REPLAYABLE_STATES, DeliveryState
from tocsin.model import DeliveryType
from tocsin.web.console.forms import Form
from tocsin.web.console.page_request import (
    MOMENTS,
    PageRequest,
    select_period,
    select_query,
)
from tocsin.web.console.pages import ConsoleAction, ConsolePage
from tocsin.web.routes.deliveries import (
    get_delivery,
    get_delivery_body,
    list_deliveries,
    replay_delivery,
)
from tocsin.web.routes.destinations import list_destinations
from tocsin.web.routes.replays import cancel_replay, create_replay, list_replays

_TEXTS = ("state", "destination", "event_type", "subject")


async def show_deliveries(request: PageRequest) -> Mapping[str, Any]:
    """Return one page of the deliveries and the running replays."""
    query = select_query(request, *_TEXTS) | select_period(request)
    cursor = select_query(request, "cursor")
    known = await request.ask(list_destinations, limit="200")
    replays = await request.ask(list_replays, limit="20")
    return {
        "found": await request.ask(list_deliveries, {}, **query, **cursor),
        "query": query,
        "states": list(DeliveryState),
        "kinds": list(DeliveryType),
        "destinations": [destination["name"] for destination in known["destinations"]],
        "can_replay": _can_replay(query),
        "running": [replay for replay in replays["replays"] if replay["state"] == "running"],
    }


def _can_replay(query: Mapping[str, str]) -> bool:
    """Return whether a replay supports these filters."""
    try:
        state = DeliveryState.parse(query.get("state", ""))
    except ValueError:
        return False
    return state in REPLAYABLE_STATES and "subject" not in query


async def show_delivery(request: PageRequest) -> Mapping[str, Any]:
    """Return a delivery with its event and attempts."""
    return {"delivery": await request.ask(get_delivery)}


async def show_body(request: PageRequest) -> Mapping[str, Any]:
    """Return the payload preview of a delivery."""
    body = await request.ask(get_delivery_body)
    return {"body": body, "delivery": await request.ask(get_delivery)}


async def show_replays(request: PageRequest) -> Mapping[str, Any]:
    """Return the replays with their progress."""
    return {"found": await request.ask(list_replays, {}, **select_query(request, "cursor"))}


def _replay(form: Form) -> Mapping[str, Any]:
    return form.given("state", "destination", "event_type", *MOMENTS)


_SECTION = "deliveries"
PAGES = (
    ConsolePage(
        path="/deliveries",
        view=show_deliveries,
        template="deliveries.html.j2",
        section=_SECTION,
    ),
    ConsolePage(
        path="/deliveries/{delivery_id}",
        view=show_delivery,
        template="delivery.html.j2",
        section=_SECTION,
        is_live=True,
    ),
    ConsolePage(
        path="/deliveries/{delivery_id}/body",
        view=show_body,
        template="delivery_body.html.j2",
        section=_SECTION,
    ),
    ConsolePage(
        path="/replays",
        view=show_replays,
        template="replays.html.j2",
        section=_SECTION,
        is_live=True,
    ),
)
ACTIONS = (
    ConsoleAction(
        path="/deliveries/{delivery_id}/replay",
        handler=replay_delivery,
        page="/deliveries/{delivery_id}",
        message="Delivery queued. Tocsin sends it immediately.",
    ),
    ConsoleAction(
        path="/replays",
        handler=create_replay,
        page="/deliveries",
        after="/replays",
        body=_replay,
        message="Replay started. Tocsin is resending the matching deliveries.",
    ),
    ConsoleAction(
        path="/replays/{replay_id}/cancel",
        handler=cancel_replay,
        page="/replays",
        message="Replay cancelled.",
    ),
)

"""Emergency stops in requests that change a destination or a provider."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tocsin.clock import isoformat_or_none
from tocsin.errors import InvalidInputError
from tocsin.model import Json
from tocsin.stops import StopOrder
from tocsin.web.context import RequestContext
from tocsin.web.parsing import invalid_member
from tocsin.web.schemas.stops import StopChange


def read_stop_order(call: RequestContext) -> StopOrder | bool | None:
    """Return the stop that a request orders, True to end a stop, or None if nothing changes."""
    body: StopChange = call.body
    if body.enabled is not False:
        return body.enabled
    until = body.until
    if body.duration is not None:
        until = call.services.clock.now() + body.duration
    return StopOrder(call.principal.name, body.reason, until)


def describe_stop_order(order: StopOrder | bool | None) -> dict[str, Json]:
    """Return the details of an audit entry about a stop."""
    if not isinstance(order, StopOrder):
        return {}
    details = {"reason": order.reason, "until": isoformat_or_none(order.until)}
    return {name: value for name, value in details.items() if value is not None}


@contextmanager
def translate_stop_errors() -> Iterator[None]:
    """Raise ProblemError (422) if the requested end time is not possible."""
    try:
        yield
    except InvalidInputError as error:
        raise invalid_member("until", str(error)) from None

"""Emergency stops of destinations and providers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import TypeAdapter, ValidationError

from tocsin.errors import OperatorError
from tocsin.fields import Duration

if TYPE_CHECKING:
    from tocsin.stops import StopKind

Until = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="When to enable it again, such as 2026-12-04T18:00:00Z. Use either --until or --for.",
    ),
]
For = Annotated[
    str | None,
    typer.Option(
        "--for",
        metavar="DURATION",
        help="How long to keep it disabled, such as 30m or 4h. Use either --until or --for.",
    ),
]
Reason = Annotated[str | None, typer.Option(help="Why you are disabling it.")]
_ENABLE = {
    "destination": "`tocsin destinations enable {}`",
    "provider": "`tocsin providers enable {}`",
}


def build_stop(until: str | None, lasting: str | None, reason: str | None) -> dict[str, Any]:
    """Return the request body of a stop; raises OperatorError for an unusable duration."""
    if until is not None and lasting is not None:
        raise OperatorError("--until: use either --until or --for, not both")
    seconds = None if lasting is None else _parse_duration(lasting) // timedelta(seconds=1)
    duration = None if seconds is None else f"PT{seconds}S"
    wanted = {"until": until, "duration": duration, "reason": reason}
    return {"enabled": False, **{name: text for name, text in wanted.items() if text is not None}}


def _parse_duration(text: str) -> timedelta:
    adapter: TypeAdapter[timedelta] = TypeAdapter(Duration)
    try:
        return adapter.validate_python(text)
    except ValidationError as error:
        raise OperatorError(f"--for: found {text!r}; {error.errors()[0]['msg']}") from None


def describe_remedy(kind: StopKind, name: str) -> str:
    """Return the instruction to enable something that was disabled."""
    return f"to enable it, run {_ENABLE[kind].format(name)}"


def describe_past_stop(stop: Mapping[str, Any]) -> str:
    """Return who disabled something and why, and when it was or will be enabled."""
    reason = f" (reason: {stop['reason']})" if stop["reason"] else ""
    if stop["ended_at"] is not None:
        is_due = stop["ended_by"] == "system"
        what = "enabled automatically" if is_due else f"enabled by {stop['ended_by']}"
        end = f"; {what} at {stop['ended_at']}"
    else:
        end = f", until {stop['until']}" if stop["until"] else ", until someone enables it"
    return f"disabled by {stop['by']}{reason}{end}"

"""Previews of the messages that a destination sends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tocsin.contracts import find_all_violations
from tocsin.delivery.destinations.channels import ChannelFactory
from tocsin.delivery.destinations.repository import Destination
from tocsin.delivery.rendering import Renderer
from tocsin.errors import Misconfigured, OperatorError
from tocsin.model import Event
from tocsin.registry import ManagedBy

_HANDED_OVER = "the plugin receives the event itself, so no template is rendered"


@dataclass(frozen=True, slots=True)
class PreviewPart:
    """A rendered part: its content, or the reason why it could not be rendered."""

    name: str
    content: str | None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Preview:
    """The rendered parts, or the reason why nothing is rendered."""

    template: str | None = None
    parts: Sequence[PreviewPart] = ()
    breaches: Sequence[str] = ()
    """How the event violates the receiver's contract."""
    reason: str | None = None


def build_preview(
    channels: ChannelFactory, renderer: Renderer, destination: Destination, event: Event
) -> Preview:
    """Render the event with the destination's current templates.

    The preview shows what the channel receives, without additions such as signatures or secrets.
    """
    if destination.managed_by is ManagedBy.PLUGIN:
        return Preview(reason=_HANDED_OVER)
    try:
        kind, settings = channels.settle(destination)
    except OperatorError as error:
        return Preview(reason=str(error))
    parts = [_render_part(renderer, settings.template, event, name) for name in kind.parts]
    rendered = {part.name: part.content.encode() for part in parts if part.content is not None}
    return Preview(settings.template, parts, _find_breaches(renderer, settings.template, rendered))


def _render_part(renderer: Renderer, template: str, event: Event, name: str) -> PreviewPart:
    try:
        return PreviewPart(name, renderer.render(template, event, name).decode())
    except Misconfigured as error:
        return PreviewPart(name, None, str(error))


def _find_breaches(renderer: Renderer, template: str, parts: Mapping[str, bytes]) -> Sequence[str]:
    try:
        contract = renderer.contract(template)
    except Misconfigured as error:
        return (str(error),)
    return () if contract is None else find_all_violations(contract, parts)

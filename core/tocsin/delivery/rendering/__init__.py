"""Rendering of events with receivers' templates.

No field's value can break out. Templates see the event as plain JSON and nothing else, in a sandbox
that bounds their time and memory. A template that fails raises `Misconfigured`: the delivery is on
hold until it is fixed.
"""

from tocsin.delivery.rendering.renderer import Renderer

__all__ = ["Renderer"]

"""Rendering events with the templates of receivers, so that no field's value can break out.

Templates see the event as plain JSON and nothing else, in a sandbox that bounds their time and
memory. What they cannot render is `Misconfigured`: the delivery waits until they are mended.
"""

from tocsin.delivery.rendering.renderer import Renderer

__all__ = ["Renderer"]

"""Rendering of events with receivers' templates.

Values from events cannot break out of their fields. Templates see only the event, as plain JSON, in
a sandbox that limits their time and memory. When a template fails, it raises `Misconfigured`, and
the delivery is on hold until someone fixes the template.
"""

from tocsin.delivery.rendering.renderer import Renderer

__all__ = ["Renderer"]

"""What the authors of plugins test with; nothing of the service imports it.

`Siem` holds incidents in nobody's format, `Day` is a day full of them, and a `Simulator` shows them
as one vendor's API does, with every `Fault` there is. `open_provider` makes a provider that may
reach it.
"""

from tocsin.testing.clock import ManualClock
from tocsin.testing.day import Day, Mishap
from tocsin.testing.faults import Fault
from tocsin.testing.siem import Case, Siem
from tocsin.testing.simulator import Asked, Refusal, Shown, Simulator
from tocsin.testing.tools import loopback_client, make_settings, make_tools, open_provider

__all__ = [
    "Asked",
    "Case",
    "Day",
    "Fault",
    "ManualClock",
    "Mishap",
    "Refusal",
    "Shown",
    "Siem",
    "Simulator",
    "loopback_client",
    "make_settings",
    "make_tools",
    "open_provider",
]

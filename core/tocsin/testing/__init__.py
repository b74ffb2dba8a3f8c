"""What the authors of plugins test with; nothing of the service imports it.

`Siem` holds incidents in nobody's format, `Day` is a day full of them, and a `Simulator` shows them
as one vendor's API does, with every `Fault` there is; a `ReceiverSimulator` is the other side of a
channel. `open_provider` makes a provider that may
reach it, `open_enricher` an enricher. `investigate` runs an investigator at a
`ScriptedQueryClient`.
"""

from tocsin.testing.clock import ManualClock
from tocsin.testing.day import Scenario, ScheduledFault
from tocsin.testing.desk import RecordedStep, ScriptedQueryClient
from tocsin.testing.faults import Fault
from tocsin.testing.installed import installed_channel, shipped_templates
from tocsin.testing.investigating import investigate
from tocsin.testing.receiver import ReceiverSimulator, RemoteObject
from tocsin.testing.serving import run_simulator
from tocsin.testing.siem import Case, LogEvent, Siem
from tocsin.testing.simulator import ListedPage, Simulator
from tocsin.testing.tools import (
    loopback_client,
    loopback_sockets,
    make_settings,
    make_tools,
    open_enricher,
    open_provider,
)
from tocsin.testing.vendor_api import ErrorResponse, RecordedRequest

__all__ = [
    "Case",
    "ErrorResponse",
    "Fault",
    "ListedPage",
    "LogEvent",
    "ManualClock",
    "ReceiverSimulator",
    "RecordedRequest",
    "RecordedStep",
    "RemoteObject",
    "Scenario",
    "ScheduledFault",
    "ScriptedQueryClient",
    "Siem",
    "Simulator",
    "installed_channel",
    "investigate",
    "loopback_client",
    "loopback_sockets",
    "make_settings",
    "make_tools",
    "open_enricher",
    "open_provider",
    "run_simulator",
    "shipped_templates",
]

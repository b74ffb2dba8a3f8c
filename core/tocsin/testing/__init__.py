"""Test kit for plugin authors.

`Siem` holds vendor-neutral incidents, and a `Scenario` fills it over time. A `Simulator` serves
them through a vendor's API, with every `Fault`; a `ReceiverSimulator` is the far side of a channel.
`open_provider` and `open_enricher` start plugins that may reach them. `investigate` runs an
investigator with a `ScriptedQueryClient`.
"""

from tocsin.testing.clock import ManualClock
from tocsin.testing.faults import Fault
from tocsin.testing.investigation import investigate
from tocsin.testing.query_client import RecordedStep, ScriptedQueryClient
from tocsin.testing.receiver import ReceiverSimulator, RemoteObject
from tocsin.testing.scenario import Scenario, ScheduledFault
from tocsin.testing.siem import Case, LogEvent, Siem
from tocsin.testing.simulator import ListedPage, Simulator
from tocsin.testing.simulator_server import run_simulator
from tocsin.testing.tools import (
    installed_channel,
    loopback_client,
    loopback_sockets,
    make_settings,
    make_tools,
    open_enricher,
    open_provider,
    shipped_templates,
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

"""Contract tests: derive from one class, say what is yours, and pytest runs them.

`ProviderConformance` is for providers of an HTTP API, `FileProviderConformance` for those that
follow files, `PushProviderConformance` for those that are sent to, `EnricherConformance` for
enrichers, and `ChannelConformance` for channels that keep objects at their receiver. A rule that
need not be kept is replaced by `exempt`, with the reason.
"""

from tocsin.testing.conformance.channel_lab import ADDRESSES, ChannelHarness
from tocsin.testing.conformance.rules import exempt
from tocsin.testing.conformance.suites import (
    ChannelConformance,
    EnricherConformance,
    FileProviderConformance,
    ProviderConformance,
    PushProviderConformance,
)

__all__ = [
    "ADDRESSES",
    "ChannelConformance",
    "ChannelHarness",
    "EnricherConformance",
    "FileProviderConformance",
    "ProviderConformance",
    "PushProviderConformance",
    "exempt",
]

"""Conformance suites for plugins."""

from tocsin.testing.conformance.channel_harness import ADDRESSES, ChannelHarness
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

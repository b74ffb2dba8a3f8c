"""Conformance suites for plugins."""

from tocsin.testing.conformance.object_channel_harness import ADDRESSES, ObjectChannelHarness
from tocsin.testing.conformance.rules import exempt
from tocsin.testing.conformance.suites import (
    ChannelConformance,
    EnricherConformance,
    FileProviderConformance,
    ObjectChannelConformance,
    ProviderConformance,
    PushProviderConformance,
)

__all__ = [
    "ADDRESSES",
    "ChannelConformance",
    "EnricherConformance",
    "FileProviderConformance",
    "ObjectChannelConformance",
    "ObjectChannelHarness",
    "ProviderConformance",
    "PushProviderConformance",
    "exempt",
]

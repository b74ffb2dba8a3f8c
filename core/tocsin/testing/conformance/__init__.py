"""Conformance suites for plugins."""

from tocsin.testing.conformance.object_channel_harness import ADDRESSES, ObjectChannelHarness
from tocsin.testing.conformance.rules import exempt
from tocsin.testing.conformance.suites import (
    ChannelConformance,
    EnricherConformance,
    FileProviderConformance,
    IntakeConformance,
    ObjectChannelConformance,
    ProviderConformance,
    PushProviderConformance,
)

__all__ = [
    "ADDRESSES",
    "ChannelConformance",
    "EnricherConformance",
    "FileProviderConformance",
    "IntakeConformance",
    "ObjectChannelConformance",
    "ObjectChannelHarness",
    "ProviderConformance",
    "PushProviderConformance",
    "exempt",
]

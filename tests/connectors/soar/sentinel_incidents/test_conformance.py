"""Conformance of the Sentinel incidents channel."""

from __future__ import annotations

from tocsin.testing.conformance import ObjectChannelConformance

from .simulator import AzureSimulator
from .suite import Suite


class TestSentinelIncidents(Suite, ObjectChannelConformance):
    permissions = AzureSimulator.permissions

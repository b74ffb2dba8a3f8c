"""Conformance of the TheHive channel."""

from __future__ import annotations

from tocsin.testing.conformance import ObjectChannelConformance
from tocsin_connectors.soar.thehive import TheHive

from .simulator import KEY, TheHiveSimulator


class TestTheHive(ObjectChannelConformance):
    channel = TheHive
    simulator = TheHiveSimulator
    permissions = TheHiveSimulator.permissions

    def settings(self, url):
        return {"url": url, "api_key": KEY}

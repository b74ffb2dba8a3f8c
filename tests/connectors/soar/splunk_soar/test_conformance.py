"""Conformance of the Splunk SOAR channel."""

from __future__ import annotations

from tocsin.testing.conformance import ObjectChannelConformance
from tocsin_connectors.soar.splunk_soar import SplunkSoar

from .simulator import TOKEN, SplunkSoarSimulator


class TestSplunkSoar(ObjectChannelConformance):
    channel = SplunkSoar
    simulator = SplunkSoarSimulator
    permissions = SplunkSoarSimulator.permissions

    def settings(self, url):
        return {"url": url, "token": TOKEN}

"""Settings of the channel for the simulator."""

from __future__ import annotations

from tocsin.testing.conformance.object_channel_harness import ObjectChannelSuite
from tocsin_connectors.soar.sentinel_incidents import SentinelIncidents

from .simulator import CLIENT_ID, CLIENT_SECRET, SUBSCRIPTION, TENANT, AzureSimulator


class Suite(ObjectChannelSuite):
    channel = SentinelIncidents
    simulator = AzureSimulator

    def settings(self, url):
        return {
            "url": url,
            "authority": url,
            "tenant": TENANT,
            "client_id": CLIENT_ID,
            "client_secret": CLIENT_SECRET,
            "subscription": SUBSCRIPTION,
            "resource_group": "soc",
            "workspace": "soc-logs",
        }

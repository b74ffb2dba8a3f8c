"""Settings of the IRIS channel for the simulator."""

from __future__ import annotations

from pathlib import Path

import tocsin_templates
from tocsin.testing.conformance.object_channel_harness import ObjectChannelSuite
from tocsin_connectors.soar.iris import Iris

from .simulator import CUSTOMER, KEY, IrisSimulator


class Suite(ObjectChannelSuite):
    channel = Iris
    simulator = IrisSimulator

    def settings(self, url):
        return {"url": url, "api_key": KEY, "customer": CUSTOMER}

    def template_paths(self):
        return list(map(Path, tocsin_templates.tocsin_template_paths()))

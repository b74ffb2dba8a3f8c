"""Conformance of the Cortex XSOAR channel."""

from __future__ import annotations

from pathlib import Path

import tocsin_templates
from tocsin import Idempotency
from tocsin.testing.conformance import ObjectChannelConformance
from tocsin_connectors.soar.xsoar import Xsoar

from .simulator import KEY, KEY_ID, XsoarSimulator


class TestXsoar(ObjectChannelConformance):
    channel = Xsoar
    simulator = XsoarSimulator
    idempotency = Idempotency.SEARCH
    permissions = XsoarSimulator.permissions

    def settings(self, url):
        return {"url": url, "api_key": KEY, "api_key_id": KEY_ID}

    def template_paths(self):
        return list(map(Path, tocsin_templates.tocsin_template_paths()))

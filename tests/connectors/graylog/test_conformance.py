"""Conformance of the Graylog provider."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tocsin.testing.conformance import ProviderConformance
from tocsin_connectors.siem.graylog import Graylog

from .simulator import SETTINGS, GraylogSimulator


class TestGraylog(ProviderConformance):
    """Events have no status, and do not change; versions of the tests are made again."""

    provider = Graylog
    simulator = GraylogSimulator

    def settings(self, url: str) -> Mapping[str, Any]:
        return {"url": url, **SETTINGS}

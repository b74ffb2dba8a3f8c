"""Conformance of the OpenSearch provider."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.connectors.opensearch.simulator import AnalyticsSimulator, name_of

from tocsin.testing import Case
from tocsin.testing.conformance import ProviderConformance, exempt
from tocsin_connectors.siem.opensearch import OpenSearch


class TestOpenSearch(ProviderConformance):
    """Each case is an alert, which is listed by when it began."""

    provider = OpenSearch
    simulator = AnalyticsSimulator

    # `test_provider` has it, with `changes_every` as it is by default
    test_a_throttled_siem_is_read_to_the_end = exempt("each look for changes lists all alerts")

    def settings(self, url: str) -> Mapping[str, Any]:
        own = {"changes_every": "1s", "changes_for": "31d"}
        return {"url": url, **AnalyticsSimulator.user, **own}

    def external_id(self, case: Case) -> str:
        return name_of(case)

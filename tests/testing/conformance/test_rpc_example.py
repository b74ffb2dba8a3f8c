"""The example for APIs with POST only, a token in the body, and errors with status 200."""

from __future__ import annotations

import pytest
from broken import broken_rules, rules_of
from test_rpc_conformance import TestRpc
from tocsin_example_rpc.provider import RpcProvider

from tocsin import Listing


class RpcConformance(TestRpc):
    __test__ = False


del TestRpc  # its rules are run by the test below


class TakesErrorsForEmptyLists(RpcProvider):
    async def list_changes(self, stream, window, token, limit):
        await self._sign_in()
        content = {"method": "cases.search", "params": {"limit": limit}, "token": self._token}
        found = (await self._post("/rpc", content)).json.get("result", {})
        return Listing(records=found.get("cases", []), next_token=found.get("next"))


FAILURES = {
    "test_reading_recovers_from_server_errors",
    "test_an_error_with_status_200_is_not_an_empty_list",
    "test_maintenance_is_waited_out",
    "test_a_missing_permission_is_refused",
}


def test_a_provider_that_takes_errors_for_empty_lists_breaks_the_rules_of_failures():
    rules = sorted(FAILURES)
    assert broken_rules(RpcConformance, TakesErrorsForEmptyLists, rules) == FAILURES
    assert broken_rules(RpcConformance, RpcProvider, rules) == set()


@pytest.mark.full
def test_the_example_keeps_every_rule():
    assert broken_rules(RpcConformance, RpcProvider, rules_of(RpcConformance)) == set()

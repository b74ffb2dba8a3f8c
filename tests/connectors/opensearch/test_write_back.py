"""Acknowledgement of alerts."""

from __future__ import annotations

import pytest
from tests.connectors.opensearch.simulator import AnalyticsSimulator, name_of

from tocsin import IncidentStatus, Refused, Severity
from tocsin.testing import Case, Siem, open_provider
from tocsin_connectors.siem.opensearch import OpenSearch


@pytest.fixture
async def simulator(clock):
    async with AnalyticsSimulator(Siem(clock)) as simulator:
        yield simulator


@pytest.fixture
async def provider(simulator, clock):
    given = {**simulator.user, "write_back_status": "active"}
    async with open_provider(OpenSearch, clock=clock, url=simulator.url, **given) as provider:
        yield provider


@pytest.fixture
def put(simulator, clock):
    def put(status=IncidentStatus.NEW) -> Case:
        now = clock.now()
        moments = {"created_at": now, "changed_at": now}
        case = Case(id="a", number=1, title="x", severity=Severity.HIGH, status=status, **moments)
        return simulator.siem.put(case)

    return put


async def test_ended_alert_stays_unchanged(simulator, provider, put):
    case = put(IncidentStatus.CLOSED)
    with pytest.raises(Refused, match="this one is 'COMPLETED'"):
        await provider.set_status(name_of(case), IncidentStatus.ACTIVE)
    assert simulator.siem.get("a") == case


async def test_alerts_can_only_be_acknowledged(provider, put):
    with pytest.raises(Refused, match="Closed is not supported"):
        await provider.set_status(name_of(put()), IncidentStatus.CLOSED)


async def test_check_reports_missing_acknowledge_permission(simulator, provider, put):
    case = put()
    assert (await provider.check()).problems == ()
    lacking = "cluster:admin/opensearch/securityanalytics/alerts/ack"
    simulator.lacks = {lacking}
    assert (await provider.check()).problems == (f"the user's role lacks {lacking}",)
    assert simulator.siem.get("a") == case

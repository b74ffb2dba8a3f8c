"""Webhooks from TheHive 5: authentication, and named alerts and cases.

The bodies have the members of notifications of TheHive 5.1, version 1, as users published them. No
TheHive has sent one in our tests.
"""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime

import pytest
from multidict import CIMultiDict
from pydantic import ValidationError

from tocsin import CredentialsRefused, PushRequest
from tocsin.testing import make_settings
from tocsin_connectors.soar.thehive import TheHive

from .test_cases import Suite

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
SECRET = "the secret of the endpoint"
ALERT = {"_id": "~40993016", "_type": "Alert", "stage": "Closed", "status": "Duplicate"}
CLOSED = {
    "_createdAt": 1683378744394,
    "_createdBy": "ana@thehive.example.com",
    "_id": "~28712",
    "_type": "Audit",
    "action": "update",
    "context": ALERT,
    "details": {"stage": "Closed", "status": "Duplicate", "summary": ""},
    "object": ALERT,
    "objectId": "~40993016",
    "objectType": "Alert",
    "organisation": {"organisation": "soc", "organisationId": "~40964176"},
    "requestId": "fe83537a8ffa36d3:18887829:187efcf369e:-8000:1414",
    "rootId": "~40993016",
}
DELETED = {**CLOSED, "action": "delete", "details": {}, "rootId": "~40964176"} | {"object": None}
CASE = {**CLOSED, "objectType": "Case", "objectId": "~122884120", "rootId": "~122884120"}
OLD_CASE = {"operation": "Update", "objectType": "case", "objectId": "~122884120", "base": True}
COMMENT = {**CLOSED, "objectType": "Comment", "objectId": "~40984624", "action": "create"}


def build_settings(**given):
    settings = {"url": "https://hive.example.com", "api_key": "a key", "status_interval": "5m"}
    return make_settings(TheHive, **settings | {"webhook_secret": SECRET} | given)


def parse(content, authorization: str | None = f"Bearer {SECRET}") -> list[str]:
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    headers = {} if authorization is None else {"Authorization": authorization}
    request = PushRequest(headers=CIMultiDict(headers), body=body)
    return list(TheHive.parse_webhook(build_settings(), request, NOW))


def encode_basic(text: str) -> str:
    return f"Basic {base64.b64encode(text.encode()).decode()}"


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (CLOSED, ["~40993016"]),
        (DELETED, ["~40993016"]),
        (CASE, ["~122884120"]),
        (OLD_CASE, ["~122884120"]),
        (COMMENT, []),
        ({"objectType": "Alert", "objectId": 17}, []),
        ({"objectType": None, "objectId": "~1"}, []),
        ([CLOSED], []),
        (b"\xff{", []),
    ],
)
def test_a_notification_names_its_alert_or_case(content, named):
    assert parse(content) == named


def test_the_endpoint_can_use_basic_authentication():
    assert parse(CLOSED, encode_basic(f"tocsin:{SECRET}")) == ["~40993016"]


@pytest.mark.parametrize(
    "authorization",
    [
        *(None, "", "Bearer", "Bearer another secret", f"Token {SECRET}", "Bearer \udcff"),
        *(encode_basic("tocsin:another"), encode_basic(SECRET), "Basic =="),
    ],
)
def test_a_wrong_or_missing_secret_is_refused(authorization):
    with pytest.raises(CredentialsRefused):
        parse(CLOSED, authorization)


def test_a_secret_without_reads_is_refused():
    with pytest.raises(ValidationError, match="also set status_interval"):
        build_settings(status_interval=None)
    assert "webhook_secret" in TheHive.Settings.secret_fields()


async def test_the_status_of_an_imported_alert_has_its_case_as_the_parent():
    async with Suite().harness() as harness:
        await harness.bring(harness.alert())
        [alert] = harness.objects
        assert (await harness.channel.read_statuses([alert.id]))[alert.id].parent_id is None
        case = harness.simulator.promote(alert.id)
        found = await harness.channel.read_statuses([alert.id])
        assert found[alert.id].parent_id == case["_id"]

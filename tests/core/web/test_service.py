"""What every answer has, and how the service says how it is."""

from __future__ import annotations

import asyncio
import logging
import re
from pathlib import Path

import pytest
import structlog
from aiohttp.test_utils import TestClient, TestServer
from sqlalchemy import text

from api_server import problem
from incident_rows import add_incidents
from tocsin.web import make_app
from tocsin.web.endpoints import ENDPOINTS
from tocsin.web.schemas.service import Liveness, Readiness

REFERENCE = Path(__file__).parents[3] / "docs" / "reference" / "api.md"


async def test_healthz(api):
    response = await api.client.get("/healthz")
    assert response.status == 200
    Liveness.model_validate(await response.json())


async def test_readyz_means_database_schema_and_roles(api):
    response = await api.client.get("/readyz")
    assert response.status == 200
    answer = await response.json()
    Readiness.model_validate(answer)
    rest = {"roles": {"api": True}, "stalled": [], "differing": [], "intake": None}
    rest |= {"suspended": None, "routing_on_hold": None}
    assert answer == {"status": "ready", "database": True, "fault": None, **rest}


async def test_readyz_waits_for_every_role(api):
    api.roles["sync"] = False
    response = await api.client.get("/readyz")
    assert response.status == 503
    assert (await response.json())["roles"] == {"api": True, "sync": False}


async def test_readyz_notices_another_schema_and_keeps_the_reason_to_itself(api):
    change = text("UPDATE alembic_version SET version_num = '0001'")
    await api.services.database.write(lambda connection: connection.execute(change) and None)
    with structlog.testing.capture_logs() as logs:
        response = await api.client.get("/readyz")
    assert response.status == 503
    answer = await response.json()
    Readiness.model_validate(answer)
    rest = {"roles": {"api": True}, "stalled": [], "differing": [], "intake": None}
    rest |= {"suspended": None, "routing_on_hold": None}
    assert answer == {"status": "not ready", "database": False, "fault": "schema", **rest}
    assert "tocsin db upgrade" in logs[0]["reason"]


async def test_readyz_names_the_loops_that_are_stuck(api):
    api.services.node.stalled = ["routing"]
    response = await api.client.get("/readyz")
    assert response.status == 503
    assert (await response.json())["stalled"] == ["routing"]


async def test_readyz_writes_once_a_second_however_often_it_is_asked(api):
    count = 0
    write = api.services.database.write

    async def counting(*arguments):
        nonlocal count
        count += 1
        return await write(*arguments)

    api.services.database.write = counting
    asked = [api.client.get("/readyz") for _ in range(50)]
    answers = await asyncio.gather(*asked)
    assert {answer.status for answer in answers} == {200}
    assert count == 2  # the second tests the disk, once a minute


async def test_a_node_without_the_api_says_how_it_is_and_nothing_else(api):
    admin = await api.admin()
    app = make_app(api.services, has_api=False)
    open_to_all = ("/healthz", "/readyz", "/metrics")
    async with TestClient(TestServer(app)) as client:
        for path in open_to_all:
            assert (await client.get(path)).status == 200
        for endpoint in ENDPOINTS:
            if endpoint.path not in open_to_all:
                path = re.sub(r"{\w+}", "1", endpoint.path)
                await problem(await client.request(endpoint.method, path, headers=admin), 404)


async def test_head_is_get_without_a_body(api):
    headers = await api.reader()
    await api.services.database.write(add_incidents)
    for path in ("/healthz", "/api/v1/incidents", "/api/v1/incidents/1"):
        got = await api.client.get(path, headers=headers)
        head = await api.client.head(path, headers=headers)
        assert (head.status, await head.read()) == (200, b"")
        assert head.headers["Content-Length"] == got.headers["Content-Length"]


@pytest.mark.parametrize("name", ["abc", "A-b_c.9", "x" * 128])
async def test_a_request_keeps_its_id(api, name):
    for path in ("/healthz", "/nothing"):
        response = await api.client.get(path, headers={"X-Request-Id": name})
        assert response.headers["X-Request-Id"] == name


@pytest.mark.parametrize("name", ["", "a b", "é", "x" * 129, "a\tb", "<script>"])
async def test_an_id_that_is_not_well_formed_is_replaced(api, name):
    response = await api.client.get("/healthz", headers={"X-Request-Id": name})
    given = response.headers["X-Request-Id"]
    assert given != name
    assert given.isalnum()


@pytest.mark.parametrize("path", ["/nothing", "/api/v1/incidents/", "/api/v1/incidents/1/2"])
async def test_there_is_nothing_elsewhere(api, path):
    await problem(await api.client.get(path), 404)


async def test_another_method_is_answered_by_those_that_are_there(api):
    response = await api.client.delete("/api/v1/search")
    document = await problem(response, 405)
    assert response.headers["Allow"] == "GET, HEAD, OPTIONS"
    assert document["detail"] == "This path supports only GET, HEAD, OPTIONS."
    response = await api.client.get("/oauth/token")
    await problem(response, 405)
    assert response.headers["Allow"] == "OPTIONS, POST"


async def test_a_public_endpoint_takes_no_unknown_parameter(api):
    await problem(await api.client.get("/healthz?verbose=1"), 422)


async def test_a_bug_is_logged_with_the_request_id_and_told_to_nobody(api):
    class FailingNode:
        async def check_database(self) -> None:
            raise ZeroDivisionError("a secret detail")

    object.__setattr__(api.services, "node", FailingNode())
    processors = [structlog.contextvars.merge_contextvars]
    with structlog.testing.capture_logs(processors=processors) as logs:
        response = await api.client.get("/readyz", headers={"X-Request-Id": "req-1"})
    document = await problem(response, 500)
    assert "secret" not in str(document)
    [entry] = [entry for entry in logs if entry["log_level"] != "debug"]
    assert entry["request_id"] == "req-1"
    assert isinstance(entry["exc_info"], ZeroDivisionError)


async def test_the_server_does_not_name_its_versions(api):
    response = await api.client.get("/healthz")
    assert response.headers["Server"] == "tocsin"


async def test_no_credential_is_ever_logged(api, caplog):
    caplog.set_level(logging.DEBUG)
    headers = await api.reader()
    with structlog.testing.capture_logs() as logs:
        await api.client.get("/api/v1/incidents", headers=headers)
    assert headers["X-API-Key"] not in f"{logs}{caplog.text}"


def test_the_reference_lists_every_endpoint_with_its_scope():
    reference = REFERENCE.read_text(encoding="utf-8")
    for endpoint in ENDPOINTS:
        heading = f"## `{endpoint.method} {endpoint.path}`"
        assert heading in reference
        section = reference.partition(heading)[2].partition("\n## ")[0]
        assert f"`{endpoint.access.value}`" in section
        for name in (field.alias or name for name, field in endpoint.query.model_fields.items()):
            assert f"`{name}`" in section
        fields = endpoint.body.model_fields if endpoint.body else {}
        for name, field in fields.items():
            assert f"`{field.alias or name}`" in section

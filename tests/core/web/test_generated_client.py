"""A client that openapi-python-client generates from the description talks to a running API."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import AsyncExitStack
from importlib import import_module
from pathlib import Path

import pytest

from api_server import PUSH_TOKEN, PUSHED, URL
from incident_rows import add_incidents
from tocsin.credentials import Scope
from tocsin.web.endpoints import ENDPOINTS
from tocsin.web.openapi import build

PACKAGE = "generated_tocsin_client"


@pytest.fixture(scope="module")
def generated(tmp_path_factory) -> Path:
    """Generate the client once, and return the folder that it can be imported from."""
    folder = tmp_path_factory.mktemp("client")
    description, config = folder / "openapi.json", folder / "config.yaml"
    document = build(ENDPOINTS, public_url=URL, issuer_url=URL)
    description.write_text(json.dumps(document), encoding="utf-8")
    config.write_text("post_hooks: []\n", encoding="utf-8")
    command = [sys.executable, "-m", "openapi_python_client", "generate", "--meta", "none"]
    paths = ["--path", str(description), "--config", str(config)]
    output = ["--output-path", str(folder / PACKAGE), "--fail-on-warning"]
    made = subprocess.run(
        [*command, *paths, *output], capture_output=True, text=True, check=False, timeout=120
    )
    assert made.returncode == 0, made.stdout + made.stderr
    return folder


@pytest.fixture
def client(generated, monkeypatch):
    """Return the modules of the client."""
    monkeypatch.syspath_prepend(generated)

    def load(name: str = ""):
        return import_module(f"{PACKAGE}.{name}" if name else PACKAGE)

    return load


@pytest.fixture
async def connect(api, client):
    """Return the client of whoever has a token, and close every client in the end."""
    async with AsyncExitStack() as stack:

        async def connect(token: str | None = None, **options):
            base = str(api.client.make_url(""))
            if token is None:
                made = client().Client(base_url=base)
            else:
                made = client().AuthenticatedClient(base_url=base, token=token, **options)
            return await stack.enter_async_context(made)

        yield connect


def test_every_operation_is_generated(generated):
    modules = {path.stem for path in (generated / PACKAGE / "api").glob("*/*.py")}
    assert modules - {"__init__"} == {endpoint.handler.__name__ for endpoint in ENDPOINTS}


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_ten_operations_are_called(api, client, connect):
    models = client("models")
    [number] = await api.services.database.write(add_incidents)
    admin = await connect(await api.token())
    reader = await connect(await api.key(*Scope), auth_header_name="X-API-Key", prefix="")
    pusher = await connect(PUSH_TOKEN)
    anonymous = await connect()

    async def call(caller, name: str, *arguments, status: int = 200, **options):
        module = client(f"api.{name}")
        response = await module.asyncio_detailed(*arguments, client=caller, **options)
        assert response.status_code == status, response.content
        return response.parsed

    health = await call(reader, "service.get_health")
    assert health.status == "ok"
    incident = await call(reader, "incidents.get_incident", number)
    assert (incident.number, incident.severity) == (number, models.Severity.HIGH)
    page = await call(reader, "incidents.list_incidents", limit=1)
    assert [found.number for found in page.incidents] == [number]
    missing = await call(reader, "incidents.get_incident", number + 1, status=404)
    assert missing.detail == "There is no incident with this number."
    new = models.NewApiKey(name="night", scopes=[models.NewApiKeyScopesItem("incidents:read")])
    created = await call(admin, "api_keys.create_api_key", body=new, status=201)
    assert created.header_name == "X-API-Key"
    listed = await call(admin, "api_keys.list_api_keys", search="night")
    assert [key.key_id for key in listed.api_keys] == [created.key_id]
    disabled = await call(admin, "api_keys.disable_api_key", created.key_id)
    assert disabled.status == models.KeyStatus.DISABLED
    client_body = models.NewApiClient(name="soar", scopes=list(models.NewApiClientScopesItem))
    secret = await call(admin, "api_clients.create_api_client", body=client_body, status=201)
    form = models.TokenRequest(
        grant_type="client_credentials",
        client_id=secret.client_id,
        client_secret=secret.client_secret,
    )
    token = await call(anonymous, "o_auth_2_0.issue_token", body=form)
    bearer = await connect(token.access_token)
    assert (await call(bearer, "incidents.list_incidents")).total == 1
    pushed = models.PushBodyType0.from_dict({"external_id": "case-17"})
    result = await call(pusher, "push.push_incidents", PUSHED, body=pushed)
    assert (result.received, result.new) == (1, 1)
    providers = await call(admin, "providers.list_providers")
    assert "edge" in {provider.name for provider in providers.providers}

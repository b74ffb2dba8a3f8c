"""Routes, pages and metrics that plugins add, and what their failures cost."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from pydantic import BaseModel, Field

from api_callers import Admin
from console import Person
from tocsin import ConsolePage, ConsoleSection, ExtensionRequest, Metric, NotFoundError, Route
from tocsin.clock import SystemClock
from tocsin.credentials import Scope
from tocsin.hookspecs.extensions import RouteAccess
from tocsin.metrics import Metrics
from tocsin.node import plugin_metrics
from tocsin.node.plugin_metrics import PluginMetrics
from tocsin.registry import PluginInventory
from tocsin.registry.loader import PluginOffers
from tocsin.web import plugin_extensions
from tocsin.web.endpoints import _document
from tocsin.web.plugin_extensions import check_sections


class Size(BaseModel):
    entries: int


class Limit(BaseModel):
    limit: int = Field(default=3, description="Most entries.")


async def get_size(request: ExtensionRequest) -> Size:
    """Return a size."""
    return Size(entries=request.query.limit)


async def add(request: ExtensionRequest) -> Size:
    return Size(entries=request.body.entries + 1)


async def miss(request: ExtensionRequest) -> Size:
    raise NotFoundError(f"There is no list {request.path['name']}.")


async def fail(request: ExtensionRequest) -> Size:
    raise RuntimeError("a secret detail")


async def hang(request: ExtensionRequest) -> Size:
    await asyncio.sleep(60)


async def mistype(request: ExtensionRequest) -> Any:
    return {"entries": 1}


async def show(request: ExtensionRequest) -> list[ConsoleSection]:
    return [ConsoleSection(heading="<b>", columns=("a",), rows=[("<script>",)])]


def make_route(path, handler, **more):
    return Route(
        path=path, summary="s", handler=handler, response=Size, **{"access": "admin"} | more
    )


def measure(objects):
    return [Metric(name="lists", description="Lists", value=2, labels={"kind": "deny"})]


def fail_to_measure(objects):
    raise RuntimeError


def hang_to_measure(objects):
    time.sleep(0.3)
    return []


OFFERS = PluginOffers(
    hooks={"acme": (), "broken": (), "slow": ()},
    routes={
        "acme": [
            make_route("/size", get_size, access="search:read", query=Limit),
            make_route("/add", add, method="POST", body=Size),
            make_route("/miss/{name}", miss),
            make_route("/fail", fail),
            make_route("/hang", hang),
            make_route("/mistype", mistype),
        ]
    },
    console_pages={
        "acme": [
            ConsolePage(path="/lists", title="Lists", view=show, role="viewer"),
            ConsolePage(path="/broken", title="Broken", view=fail),
        ]
    },
    metrics={"acme": measure, "broken": fail_to_measure, "slow": hang_to_measure},
)


@pytest.fixture
def inventory():
    return PluginInventory(offers=OFFERS)


@pytest.fixture
def offered(inventory, monkeypatch):
    """The plugins of an API that is opened from now on."""
    for name in ("loaded", "routes", "console_pages"):
        monkeypatch.setattr(PluginInventory, name, getattr(inventory, name))
    monkeypatch.setattr(plugin_extensions, "_SECONDS", 0.1)


async def find_admin(api):
    return Admin(api, await api.admin()).headers


def test_every_scope_can_be_required():
    assert set(RouteAccess.__args__) == {"admin", *Scope}


async def test_routes_are_guarded_and_validated(offered, api):
    admin = await find_admin(api)
    size = "/api/plugins/acme/size"
    key = {"X-API-Key": await api.key(Scope.SEARCH_READ)}
    other = {"X-API-Key": await api.key(Scope.GRAPH_READ)}
    assert (await api.client.get(size)).status == 401
    assert (await api.client.get(size, headers=other)).status == 403
    assert (await api.client.get("/api/plugins/acme/fail", headers=key)).status == 403
    assert await (await api.client.get(f"{size}?limit=5", headers=key)).json() == {"entries": 5}
    assert (await api.client.get(f"{size}?other=5", headers=key)).status == 422
    path = "/api/plugins/acme/add"
    added = await api.client.post(path, json={"entries": 1}, headers=admin)
    assert await added.json() == {"entries": 2}
    assert (await api.client.post(path, json={"entry": 1}, headers=admin)).status == 422
    missed = await api.client.get("/api/plugins/acme/miss/x", headers=admin)
    assert (missed.status, (await missed.json())["detail"]) == (404, "There is no list x.")


@pytest.mark.parametrize("path", ["fail", "hang", "mistype"])
async def test_a_route_that_fails_names_its_plugin_and_no_details(offered, api, path):
    admin = await find_admin(api)
    answer = await api.client.get(f"/api/plugins/acme/{path}", headers=admin)
    problem = await answer.json()
    assert (answer.status, problem["type"]) == (500, "/problems/plugin-failed")
    assert "The plugin acme failed" in problem["detail"]
    assert "secret" not in problem["detail"]
    assert (await api.client.get("/healthz")).status == 200


async def test_pages_are_rendered_as_text_by_role(offered, api):
    viewer, admin = Person(api), Person(api)
    await viewer.sign_in("viewer")
    await admin.sign_in()
    answer = await viewer.get("/plugins/acme/lists")
    page = await answer.text()
    assert answer.status == 200
    assert "&lt;script&gt;" in page
    assert "<script>" not in page
    assert "Lists (acme)" in page
    assert "Broken (acme)" not in page
    assert (await viewer.get("/plugins/acme/broken")).status == 403
    broken = await admin.get("/plugins/acme/broken")
    assert (broken.status, "The plugin acme failed" in await broken.text()) == (500, True)


async def test_a_plugin_that_a_reload_disables_serves_nothing(offered, api, monkeypatch):
    monkeypatch.setattr(PluginInventory, "loaded", ())
    answer = await api.client.get("/api/plugins/acme/fail", headers=await find_admin(api))
    assert answer.status == 404


def test_routes_are_in_the_openapi_document(inventory):
    document = _document("https://tocsin.example.org", "https://tocsin.example.org", inventory)
    operation = document["paths"]["/api/plugins/acme/size"]["get"]
    assert operation["x-required-scope"] == "search:read"
    content = operation["responses"]["200"]["content"]["application/json"]
    assert content["schema"] == {"$ref": "#/components/schemas/acme.Size"}
    assert document["components"]["schemas"]["acme.Size"]["required"] == ["entries"]


async def test_sections_are_text():
    [section] = check_sections(await show(None), show)
    assert section["rows"] == [["<script>"]]
    with pytest.raises(TypeError, match="`fail`"):
        check_sections([1], fail)


async def test_metrics_of_plugins_that_fail_are_left_out(inventory, monkeypatch):
    monkeypatch.setattr(plugin_metrics, "_SECONDS", 0.1)
    metrics = Metrics(SystemClock())
    PluginMetrics(metrics, lambda: inventory, lambda _: {})
    text = (await metrics.expose()).decode()
    assert 'tocsin_plugin_acme_lists{kind="deny"} 2.0' in text
    assert "broken" not in text

"""The API's description is complete, valid, and true."""

from __future__ import annotations

from datetime import timedelta
from io import BytesIO

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from api_callers import GOOD_DESTINATION
from api_server import PUSH_TOKEN, PUSHED, URL, open_api
from delivery_rows import add_delivery
from incident_rows import add_incidents, add_quarantined
from openapi_rules import check
from passkey_rows import add_passkey
from session_rows import add_session
from tocsin.credentials import (
    ConsoleRole,
    ConsoleSession,
    Scope,
    begin_session,
    generate_key,
    list_sessions,
)
from tocsin.model import EventType
from tocsin.web.context import AccessRole
from tocsin.web.endpoints import ENDPOINTS
from tocsin.web.schemas.examples import SCHEDULE_ID
from tocsin.web.schemas.people import NewPerson
from tocsin.web.schemas.suppressions import NewSuppressionRule

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)

ADMIN = "/api/admin"
PUSH = "/api/push/{provider}"
# These reveal no destination
TICKET_EVENTS = "/api/ticket-events/{destination}"
MESSAGE_ACTIONS = "/api/message-actions/{destination}"
KEYS = "/api/admin/api-keys"
INCIDENTS = "/api/v1/incidents"
SENDER = {"Authorization": f"Bearer {PUSH_TOKEN}"}
JSON = "application/json"
FORM = "application/x-www-form-urlencoded"


@pytest.fixture
async def document(api) -> dict:
    return await (await api.client.get("/openapi.json")).json()


def operations(document) -> list[tuple[str, str, dict]]:
    return [
        (path, method, operation)
        for path, item in document["paths"].items()
        for method, operation in item.items()
        if method != "servers"
    ]


def resolve(document, node: dict) -> dict:
    """Return what a reference leads to; the node itself where it is none."""
    found = document
    for key in node.get("$ref", "").removeprefix("#/").split("/") if "$ref" in node else ():
        found = found[key]
    return found if "$ref" in node else node


def responses_of(document, operation) -> dict[str, dict]:
    return {status: resolve(document, node) for status, node in operation["responses"].items()}


def examples_of(document, media) -> list:
    """Return the examples of what is sent: its own, or those of its schema."""
    own = [resolve(document, node)["value"] for node in media.get("examples", {}).values()]
    return own or resolve(document, media["schema"]).get("examples", [])


def validate(document, schema, value) -> None:
    bundle = {**schema, "components": document["components"]}
    Draft202012Validator(bundle, format_checker=Draft202012Validator.FORMAT_CHECKER).validate(value)


async def test_the_document_is_valid_and_describes_every_endpoint(document):
    OpenAPIV31SpecValidator(document).validate()
    assert document["servers"] == [{"url": URL}]
    assert document["info"]["license"]["identifier"] == "Apache-2.0"
    for endpoint in ENDPOINTS:
        operation = document["paths"][endpoint.path][endpoint.method.lower()]
        assert operation["summary"] == endpoint.summary
        assert operation["description"]
        assert str(endpoint.status) in operation["responses"]
    assert len(operations(document)) == len(ENDPOINTS)


async def test_the_document_keeps_the_rules(document):
    assert list(check(document)) == []


@pytest.mark.parametrize(
    ("path", "value", "fault"),
    [
        (("info", "contact"), None, "info.contact: missing"),
        (("paths", KEYS, "get", "operationId"), "keys_list", "does not begin with a known verb"),
        (("paths", KEYS, "get", "operationId"), "search_keys", "does not begin with"),
        (("paths", KEYS, "get", "operationId"), "create_api_key", "is not unique"),
        (("paths", KEYS, "get", "tags"), [], "use one tag"),
        (("paths", KEYS, "get", "security"), [{"oauth2": ["x"]}], "declares no scope ['x']"),
        (("paths", KEYS, "get", "security"), [{"basic": []}], "no security scheme 'basic'"),
        (("paths", INCIDENTS, "get", "x-required-scope"), "x", "the scope that an API key needs"),
        (("paths", KEYS, "get", "responses", "401"), {"description": "x"}, "response 401"),
        (("components", "schemas", "PushBody", "type"), "array", "an array without items"),
        (("components", "schemas", "ApiKeyList", "examples"), [{}], "an example does not fit"),
        (("components", "schemas", "ApiKeyList", "examples"), None, "ApiKeyList: no example"),
        (("components", "schemas", "Unused"), {}, "nothing refers to it"),
        (("openapi",), 3, "specification: "),
    ],
)
async def test_what_breaks_a_rule_is_found(document, path, value, fault):
    node = document
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value
    if value is None:
        del node[path[-1]]
    assert any(fault in found for found in check(document))


async def test_only_what_is_sent_in_is_closed_to_more_members(document):
    bodies = {endpoint.body.__name__ for endpoint in ENDPOINTS if endpoint.body}
    schemas = document["components"]["schemas"]
    closed = {name for name, schema in schemas.items() if "additionalProperties" in schema}
    assert closed == bodies


async def test_every_operation_belongs_to_a_group_that_is_described(document):
    groups = {tag["name"] for tag in document["tags"] if tag["description"]}
    used = {tag for _, _, operation in operations(document) for tag in operation["tags"]}
    assert used == groups


async def test_parameters_and_security_are_named(document):
    listing = document["paths"]["/api/v1/incidents"]["get"]
    names = [parameter.get("name") for parameter in listing["parameters"]]
    assert names[:3] == ["severity", "status", "timespan"]
    assert names[14:17] == ["limit", "cursor", "changed_after"]
    assert listing["security"] == [{"apiKey": []}, {"oauth2": ["incidents:read"]}]
    assert listing["x-required-scope"] == "incidents:read"
    assert set(document["components"]["securitySchemes"]["apiKey"]["x-scopes"]) == set(Scope)
    creating = document["paths"][f"{ADMIN}/api-keys"]["post"]
    assert creating["security"] == [{"adminToken": []}]
    assert {"$ref": "#/components/parameters/IdempotencyKey"} in creating["parameters"]
    assert document["paths"]["/oauth/token"]["post"]["security"] == [{"clientSecret": []}, {}]
    flow = document["components"]["securitySchemes"]["oauth2"]["flows"]["clientCredentials"]
    assert flow["tokenUrl"] == f"{URL}/oauth/token"
    assert set(flow["scopes"]) == set(Scope)


async def test_every_way_to_be_refused_is_told(document):
    public = {endpoint.path for endpoint in ENDPOINTS if endpoint.access is AccessRole.PUBLIC}
    public.remove("/metrics")  # its token is a setting
    for path, method, operation in operations(document):
        responses = responses_of(document, operation)
        assert "500" in responses
        assert ("401" in responses) == ("429" in responses) == (path not in public)
        assert ("304" in responses) == (method == "get")
        assert ("{" in path) <= ("404" in responses or path in (TICKET_EVENTS, MESSAGE_ACTIONS))
        assert "X-Request-Id" in responses["500"]["headers"]
        if "429" in responses:
            limited = {"Retry-After"} if path == "/metrics" else {"Retry-After", "RateLimit"}
            assert limited <= set(responses["429"]["headers"])
            assert "WWW-Authenticate" in responses["401"]["headers"]
    creating = document["paths"][f"{ADMIN}/api-keys"]["post"]["responses"]
    assert {"400", "403", "406", "409", "411", "413", "415", "422", "503"} <= set(creating)


async def test_oauth_errors_have_their_own_form(document):
    responses = responses_of(document, document["paths"]["/oauth/token"]["post"])
    for status in ("400", "401", "413", "429"):
        [(media_type, content)] = responses[status]["content"].items()
        assert media_type == JSON
        assert content["schema"] == {"$ref": "#/components/schemas/OAuthErrorDocument"}


async def test_every_example_is_an_example_of_its_schema(document):
    webhooks = [item["post"] for item in document["webhooks"].values()]
    checked = 0
    for operation in [operation for _, _, operation in operations(document)] + webhooks:
        responses = responses_of(document, operation).values()
        bodies = [operation.get("requestBody", {}), *responses]
        for media in (media for body in bodies for media in body.get("content", {}).values()):
            examples = examples_of(document, media)
            if media["schema"] != {"type": "string"}:
                assert examples
            for example in examples:
                validate(document, media["schema"], example)
                checked += 1
    assert checked > len(ENDPOINTS)


_, UNKNOWN = generate_key()
CREDENTIALS = {"X-API-Key": UNKNOWN, "Authorization": "Bearer a.b.c"}
REFUSED = [
    ("GET", INCIDENTS, {"headers": {"X-API-Key": UNKNOWN}}, 401),
    ("GET", KEYS, {"headers": {"Authorization": "Bearer a.b.c"}}, 401),
    ("GET", INCIDENTS, {"headers": CREDENTIALS}, 400),
    ("GET", INCIDENTS, {}, 403),
    ("GET", f"{INCIDENTS}/{{number}}", {}, 404),
    ("GET", f"{KEYS}/{{key_id}}", {}, 404),
    ("GET", "/api/admin/api-clients/{client_id}", {}, 404),
    ("GET", "/api/admin/destinations/{name}", {}, 404),
    ("GET", "/api/admin/schedules/{schedule_id}", {}, 404),
    ("GET", "/healthz", {"headers": {"Accept": "text/html"}}, 406),
    ("POST", KEYS, {"data": b" " * 65_537, "headers": {"Content-Type": JSON}}, 413),
    ("POST", KEYS, {"data": {"name": "night"}}, 415),
    ("POST", KEYS, {"headers": {"Idempotency-Key": ""}}, 400),
    ("GET", "/healthz", {"params": {"verbose": "1"}}, 422),
    ("POST", PUSH, {"headers": {"Authorization": "Bearer wrong"}, "json": {}}, 401),
    ("POST", PUSH, {"json": {}}, 422),
    ("POST", PUSH, {"data": {"name": "night"}}, 415),
    ("POST", PUSH, {"data": BytesIO(b" " * (2**24 + 1)), "headers": {"Content-Type": JSON}}, 413),
    ("POST", "/oauth/token", {"data": {"grant_type": "password"}}, 400),
    ("POST", "/oauth/token", {"data": b"a=1&a=2", "headers": {"Content-Type": FORM}}, 400),
    ("POST", "/oauth/token", {"data": b" " * 65_537, "headers": {"Content-Type": FORM}}, 413),
]


@pytest.mark.parametrize("refused", REFUSED)
async def test_a_refusal_is_told_in_its_own_words(api, document, refused):
    method, path, sent, status = refused
    own = await api.reader() if "{number}" in path else await api.admin()
    own = SENDER if path == PUSH else own
    headers = {} if path.startswith("/oauth/") else own
    if CREDENTIALS.keys() & sent.get("headers", {}).keys():
        headers = {}
    headers |= sent.get("headers", {})
    address = path.format(
        number=1,
        key_id="0a1B2c3D4e5F6g7H",
        client_id="cl_0a1B2c3D4e5F6g7H",
        name="soar",
        provider=PUSHED,
        schedule_id=SCHEDULE_ID,
    )
    response = await api.client.request(method, address, **sent | {"headers": headers})
    assert response.status == status, await response.text()
    described = responses_of(document, document["paths"][path][method.lower()])[str(status)]
    examples = examples_of(document, described["content"][response.content_type])
    assert _words(await response.json()) in [_words(example) for example in examples]


def _words(answer: dict) -> tuple:
    return tuple(answer.get(name) for name in ("type", "error", "detail", "error_description"))


async def test_every_event_is_described_with_what_signs_it(document):
    assert set(document["webhooks"]) == set(EventType)
    for kind, item in document["webhooks"].items():
        names = [parameter["name"] for parameter in item["post"]["parameters"]]
        assert names == ["webhook-id", "webhook-timestamp", "webhook-signature"]
        assert {"2XX", "410"} <= set(item["post"]["responses"])
        [content] = item["post"]["requestBody"]["content"].values()
        [example] = examples_of(document, content)
        assert example["event_type"] == kind


async def test_a_token_endpoint_elsewhere_is_told(database, clock):
    async with open_api(database, clock, auth_url="https://login.example") as api:
        document = await (await api.client.get("/openapi.json")).json()
    OpenAPIV31SpecValidator(document).validate()
    assert document["paths"]["/oauth/token"]["servers"] == [{"url": "https://login.example"}]
    assert "servers" not in document["paths"]["/healthz"]


SOMETIMES = {"Tocsin-Replica-Lag", "Link", "Idempotency-Replayed"}
ON_OCCASION = {"Link", "Idempotency-Replayed"}
TOLD_ONCE = ("key_id", "client_id", "client_secret", "access_token")
NEW = {"name": "night", "scopes": ["incidents:read"]}
GRANT = {"grant_type": "client_credentials"}
BACKFILL = {"provider": "edge", "from": "2026-11-01T00:00:00Z", "to": "2026-11-08T00:00:00Z"}
SCHEDULE = {"name": "nightly", "query": "what did 192.0.2.1 do?", "cron": "0 2 * * *"}
MADE = {
    "/api/admin/replays": "replay_id",
    "/api/admin/backfills": "backfill_id",
    "/api/admin/schedules": "schedule_id",
}
CALLS = [
    ("POST", "/api/admin/api-keys", {"json": NEW}),
    ("GET", "/api/admin/api-keys", {}),
    ("GET", "/api/admin/api-keys/{key_id}", {}),
    ("POST", "/api/admin/api-keys/{key_id}/rotate", {}),
    ("DELETE", "/api/admin/api-keys/{key_id}", {}),
    ("POST", "/api/admin/api-clients", {"json": NEW}),
    ("GET", "/api/admin/api-clients", {}),
    ("GET", "/api/admin/api-clients/{client_id}", {}),
    ("POST", "/oauth/token", {"data": GRANT}),
    ("POST", "/oauth/introspect", {"data": {"token": "access_token"}}),
    ("POST", "/oauth/revoke", {"data": {"token": "access_token"}}),
    ("POST", "/api/admin/api-clients/{client_id}/revoke-tokens", {}),
    ("POST", "/api/admin/api-clients/{client_id}/regenerate-secret", {}),
    ("DELETE", "/api/admin/api-clients/{client_id}", {}),
    ("POST", "/api/admin/people", {"json": NewPerson.EXAMPLE}),
    ("GET", "/api/admin/people", {}),
    ("GET", "/api/admin/people/{person}", {}),
    ("PATCH", "/api/admin/people/{person}", {"json": {"role": "viewer"}}),
    ("POST", "/api/admin/people/{person}/passkey-link", {}),
    ("DELETE", "/api/admin/people/{person}/passkeys/{passkey_id}", {}),
    ("DELETE", "/api/admin/people/{person}", {}),
    ("POST", "/api/admin/destinations", {"json": GOOD_DESTINATION}),
    ("GET", "/api/admin/destinations", {}),
    ("GET", "/api/admin/destinations/{name}", {}),
    ("PATCH", "/api/admin/destinations/{name}", {"json": {"enabled": False}}),
    ("PATCH", "/api/admin/destinations/{name}", {"json": {"enabled": True}}),
    ("POST", "/api/admin/destinations/{name}/resume", {}),
    ("POST", "/api/admin/destinations/{name}/test", {}),
    ("POST", "/api/admin/destination-tests", {"json": {"destination": "soar"}}),
    ("DELETE", "/api/admin/destinations/{name}", {}),
    ("GET", "/api/admin/providers", {}),
    ("PATCH", "/api/admin/providers/{provider}", {"json": {"enabled": False}}),
    ("GET", "/api/admin/plugins", {}),
    ("GET", "/api/admin/plugins/{plugin}", {}),
    ("POST", "/api/admin/backfills", {"json": BACKFILL}),
    ("GET", "/api/admin/backfills", {}),
    ("GET", "/api/admin/backfills/{backfill_id}", {}),
    ("POST", "/api/admin/backfills/{backfill_id}/cancel", {}),
    ("GET", "/api/admin/quarantine", {}),
    ("GET", "/api/admin/quarantine/{record_id}", {}),
    ("POST", "/api/admin/quarantine/{record_id}/retry", {}),
    ("POST", "/api/admin/quarantine-retries", {"json": {"records": [1]}}),
    ("POST", "/api/admin/suppressions", {"json": NewSuppressionRule.EXAMPLE | {"name": "soar"}}),
    ("GET", "/api/admin/suppressions", {}),
    ("GET", "/api/admin/suppressions/{name}", {}),
    ("DELETE", "/api/admin/suppressions/{name}", {}),
    ("POST", "/api/admin/schedules", {"json": SCHEDULE}),
    ("GET", "/api/admin/schedules", {}),
    ("GET", "/api/admin/schedules/upcoming", {}),
    ("GET", "/api/admin/schedules/{schedule_id}", {}),
    ("PATCH", "/api/admin/schedules/{schedule_id}", {"json": {"interval": "PT15M"}}),
    ("POST", "/api/admin/schedules/{schedule_id}/run", {}),
    ("GET", "/api/admin/schedules/{schedule_id}/runs", {}),
    ("POST", "/api/admin/schedules/{schedule_id}/disable", {}),
    ("POST", "/api/admin/schedules/{schedule_id}/enable", {}),
    ("DELETE", "/api/admin/schedules/{schedule_id}", {}),
    ("GET", "/api/admin/console-sessions", {}),
    ("DELETE", "/api/admin/console-sessions/{console_session_id}", {}),
    ("DELETE", "/api/admin/console-sessions", {"params": {"principal": "admin:ana"}}),
    ("GET", "/api/admin/deliveries", {}),
    ("GET", "/api/admin/deliveries/{delivery_id}", {}),
    ("GET", "/api/admin/deliveries/{delivery_id}/body", {}),
    ("GET", "/api/admin/channels", {}),
    ("POST", "/api/admin/replays", {"json": {"state": "dead"}}),
    ("GET", "/api/admin/replays", {}),
    ("POST", "/api/admin/events/reroute", {"json": {"since": "2026-11-20T22:00:00Z"}}),
    ("POST", "/api/admin/erasures", {"json": {"entity": "user:j.doe"}}),
    ("GET", "/api/admin/replays/{replay_id}", {}),
    ("POST", "/api/admin/replays/{replay_id}/cancel", {}),
    ("POST", "/api/admin/deliveries/{delivery_id}/replay", {}),
    ("GET", "/api/admin/trace/{number}", {}),
    ("GET", "/api/admin/proof", {}),
    ("GET", "/api/admin/audit", {}),
    ("POST", PUSH, {"json": {"external_id": "case-17"}}),
    ("GET", "/api/v1/incidents", {}),
    ("GET", "/api/v1/incidents/{number}", {}),
    ("GET", "/api/v1/incidents/{number}/context", {}),
    ("GET", "/api/v1/incidents/trend", {}),
    ("GET", "/api/v1/incidents/detections", {}),
    ("GET", "/api/v1/incidents/{number}/alerts", {}),
    ("GET", "/api/v1/status-mismatches", {}),
    ("PATCH", "/api/v1/incidents", {"json": {"numbers": [1, 99], "change": {"assignee": "ana"}}}),
    ("PATCH", "/api/v1/incidents/{number}", {"json": {"assignee": "ana", "add_tags": ["vip"]}}),
    ("POST", "/api/v1/incidents/{number}/comments", {"json": {"text": "seen"}}),
    ("GET", "/api/v1/incidents/{number}/comments", {}),
    ("POST", "/api/v1/incidents/{number}/enrich", {}),
    ("GET", "/api/v1/investigations", {}),
    ("GET", "/api/v1/investigations/{session_id}", {}),
    ("GET", "/api/v1/investigations/{session_id}/report.json", {}),
    ("GET", "/api/v1/investigations/{session_id}/report.md", {}),
    ("GET", "/api/v1/investigations/{session_id}/report.html", {}),
    ("GET", "/api/v1/investigations/{session_id}/findings", {}),
    ("GET", "/api/v1/investigations/{session_id}/entities", {}),
    ("GET", "/api/v1/investigations/{session_id}/timeline", {}),
    ("GET", "/api/v1/investigations/{session_id}/steps", {}),
    ("GET", "/api/v1/investigations/{session_id}/steps/{step}", {}),
    ("GET", "/api/v1/sessions/{session_id}", {}),
    ("POST", "/api/v1/sessions/{session_id}/message", {"json": {"message": "And since when?"}}),
    ("POST", "/api/v1/sessions/{session_id}/cancel", {}),
    ("POST", "/api/v1/investigations/start", {"json": {"query": "what did 192.0.2.1 do?"}}),
    ("GET", "/api/v1/search", {"params": {"q": "192.0.2.1"}}),
    ("GET", "/api/v1/search/entities", {"params": {"q": "192.0.2.1"}}),
    ("GET", "/api/v1/graph/entity/{value}", {}),
    ("GET", "/api/v1/graph/path", {"params": {"from": "192.0.2.1", "to": "1"}}),
    ("GET", "/api/v1/graph/stats", {}),
    ("GET", "/api/v1/graph/export", {"params": {"value": "192.0.2.1"}}),
    ("GET", "/.well-known/jwks.json", {}),
    ("GET", "/.well-known/oauth-authorization-server", {}),
    ("GET", "/healthz", {}),
    ("GET", "/readyz", {}),
    ("GET", "/metrics", {}),
    ("GET", "/openapi.json", {}),
    ("GET", "/docs", {}),
    ("POST", "/api/admin/reload", {}),
]
"""A call of every endpoint, in an order in which each succeeds."""


def add_console_session(connection, now) -> str:
    """Sign an admin in, and return the ID of the session."""
    end = now + timedelta(hours=1)
    begin_session(connection, ConsoleSession("admin:ana", "ana", ConsoleRole.ADMIN, end), now)
    [session] = list_sessions(connection, now, 1)
    return session["id"]


async def test_every_answer_is_as_described(api, document, clock):
    called = {(method, path) for method, path, _ in CALLS}
    called.add(("POST", TICKET_EVENTS))  # in test_ticket_events.py, with a tracker
    called.add(("POST", MESSAGE_ACTIONS))  # in test_message_actions.py, with Slack
    assert called == {(endpoint.method, endpoint.path) for endpoint in ENDPOINTS}
    await api.services.database.write(add_incidents, entities=[("ip", "192.0.2.1")])
    await api.services.database.write(add_quarantined, PUSHED, clock.now(), content=b"[]")
    admin, reader = await api.admin(), await api.analyst()
    delivery = await api.services.database.write(add_delivery)
    session = await api.services.database.write(add_session)
    known: dict = {
        "number": 1,
        "console_session_id": await api.services.database.write(add_console_session, clock.now()),
        "record_id": 1,
        "name": "soar",
        "delivery_id": delivery,
        "person": "ben",
        "passkey_id": await api.services.database.write(add_passkey, clock.now()),
    }
    known |= {"session_id": session, "step": 1, "value": "192.0.2.1", "plugin": "webhook"}
    for method, path, request in CALLS:
        headers = admin if path.startswith(ADMIN) else reader if "/v1/" in path else {}
        headers = SENDER if path == PUSH else headers
        if "data" in request:
            credentials = {name: known[name] for name in ("client_id", "client_secret")}
            fields = {name: known.get(value, value) for name, value in request["data"].items()}
            sent = {"data": credentials | fields}
        else:
            sent = request
        known["provider"] = PUSHED if path == PUSH else "edge"
        address = path.format(**known)
        response = await api.client.request(method, address, headers=headers, **sent)
        assert response.status < 300, await response.text()
        described = document["paths"][path][method.lower()]["responses"][str(response.status)]
        assert all(name in response.headers for name in described["headers"].keys() - SOMETIMES)
        content = described["content"][response.content_type]
        if response.content_type == "application/json":
            answer = await response.json()
            validate(document, content["schema"], answer)
            known |= {name: answer[name] for name in answer if name in TOLD_ONCE}
            if method == "POST" and path in MADE:
                known[MADE[path]] = answer["id"]

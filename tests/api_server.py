"""Running API on either database, with credentials."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import structlog
from aiohttp import web
from aiohttp.test_utils import BaseTestServer, TestClient
from argon2 import PasswordHasher
from cryptography.fernet import Fernet
from cryptography.hazmat.primitives.asymmetric import rsa
from sqlalchemy import Connection, insert, select
from ulid import ULID

import tocsin_templates
from tocsin.credentials import (
    ApiClient,
    ApiKey,
    Scope,
    Vault,
    create_api_client,
    create_api_key,
    generate_client_id,
    generate_client_secret,
    generate_key,
)
from tocsin.credentials.signing_keys import ALGORITHMS, Purpose, _private_pem, _public_pem
from tocsin.delivery import (
    ChannelFactory,
    DestinationServices,
    Renderer,
)
from tocsin.enrichment import Enrichers, IncidentEnricher
from tocsin.events import Notifiers
from tocsin.fields import SettingsOrigin
from tocsin.hookspecs import Capability, Tools
from tocsin.incidents import ProviderFacts, PushInbox, SyncContext
from tocsin.metrics import Metrics
from tocsin.observables import Environment, EnvironmentSettings
from tocsin.registry import (
    AbsentPlugin,
    Configuration,
    PluginFactory,
    PluginInventory,
    PluginsFile,
    installed_plugins,
)
from tocsin.registry.entry_points import ON_BY_DEFAULT
from tocsin.registry.loader import PluginOffers
from tocsin.settings import Settings
from tocsin.store import Database, DatabaseFault, DatabaseProbe, ReadReplica
from tocsin.store.tables import signing_keys
from tocsin.web import ApiRunner, ApiRuntime, ReloadResult, make_app, open_api_runtime
from tocsin.web.context import ApiServices
from tocsin.web.problems import ProblemDocument
from tocsin_connectors.siem.push import Push
from tocsin_plugins.webhook import Webhook

URL = "https://tocsin.example"
CONFIGURATION = Configuration(
    path=Path("plugins.toml"),
    providers=(),
    destinations=(),
    enrichers=(),
    investigator=None,
    environment=EnvironmentSettings(),
    channels={"webhook": Webhook},
    observers={},
    template_paths=tocsin_templates.tocsin_template_paths(),
    absent=(),
    strict=False,
    file=PluginsFile(providers={"edge": {"plugin": "crowdsec"}, "sensors": {"plugin": "simple"}}),
    inventory=PluginInventory(
        PluginsFile(enabled=("webhook",), disabled=tuple(ON_BY_DEFAULT)),
        installed_plugins(),
        PluginOffers(channels={"webhook": Webhook}, hooks={"webhook": ("tocsin_channels",)}),
    ),
)
"""What a `plugins.toml` comes to that enables the plugin `webhook`, and names two providers."""
PROVIDERS = (
    ProviderFacts("edge", "crowdsec", frozenset({Capability.BACKFILL, Capability.REFRESH})),
    ProviderFacts("sensors", "simple", frozenset()),
)
"""What the API takes for configured."""
PUSHED = "our-scripts"
PUSH_FORMAT = "incident"
"""The provider of every API, which takes incidents as they are."""
PUSH_TOKEN = "a-token-of-our-scripts"
PUSH_SECRET = "whsec_" + "QUJD" * 10
ENCRYPTION_KEY = Fernet.generate_key().decode()  # one, since nodes of one database share it

# A hash says by itself what verifying it takes; that of the tests' own secrets is next to nothing
CHEAP_HASHER = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)


@cache
def _signing_key() -> dict[str, object]:
    """Return one key for every API, since making one takes longer than most tests."""
    key = rsa.generate_private_key(public_exponent=65_537, key_size=2048)
    return {
        "purpose": Purpose.ACCESS,
        "algorithm": ALGORITHMS[Purpose.ACCESS],
        "public_key": _public_pem(key),
        "private_key": Vault(ENCRYPTION_KEY, source="test").encrypt(_private_pem(key)),
    }


def _store_signing_key(connection: Connection, now: datetime) -> None:
    if not connection.execute(select(signing_keys.c.id)).first():
        row = _signing_key() | {"id": str(ULID()), "created_at": now, "signs_from": now}
        connection.execute(insert(signing_keys).values(row))


@dataclass
class NodeStatus:
    """State of the node that an API is told to run on."""

    roles: dict[str, bool]
    name: str = "test:0"
    absent: Sequence[AbsentPlugin] = ()
    drift: Sequence[str] = ()
    suspension: str | None = None
    routing_hold: str | None = None
    stalled: Sequence[str] = ()
    degraded: Mapping[str, str] = field(default_factory=dict)
    objects: Mapping[str, Any] = field(default_factory=dict)
    probe: DatabaseProbe | None = None
    fault: DatabaseFault | None = None
    """In place of what the probe finds."""

    def find_objects(self, plugin: str) -> Mapping[str, Any]:
        return self.objects

    async def check_database(self) -> DatabaseFault | None:
        return self.fault or await self.probe.check()

    async def reload(self) -> ReloadResult:
        return ReloadResult(changed=["providers.edge"], restart_required=[], drift=[])


class ApiServer(BaseTestServer):
    """The server of a node on a free port."""

    def __init__(self, app: web.Application) -> None:
        super().__init__()
        self.app = app

    async def _make_runner(self, **_options: Any) -> ApiRunner:
        return ApiRunner(self.app)


@dataclass
class Api:
    """The services behind the API, and a client that talks to it over a socket."""

    door: ApiRuntime
    roles: dict[str, bool]
    client: TestClient = field(init=False)

    @property
    def services(self) -> ApiServices:
        return self.door.services

    async def key(self, *scopes: Scope, days: int = 1) -> str:
        """Store a key with these scopes, and return it."""
        value, text = generate_key()
        now = self.services.clock.now()
        key = ApiKey(
            id=str(ULID()),
            key_id=value.identifier,
            prefix=value.prefix,
            name="playbooks",
            description="",
            scopes=scopes,
            secret_hash=CHEAP_HASHER.hash(value.secret),
            created_by="ana",
            created_at=now,
            updated_at=now,
            expires_at=now + timedelta(days=days),
        )
        await self.services.database.write(create_api_key, key)
        return text

    async def client_credentials(self, *scopes: Scope) -> dict[str, str]:
        """Store an API client with these scopes, and return its id and secret as form fields."""
        secret = generate_client_secret()
        now = self.services.clock.now()
        client = ApiClient(
            id=str(ULID()),
            client_id=generate_client_id(),
            name="soar",
            description="",
            scopes=scopes,
            secret_hash=CHEAP_HASHER.hash(secret),
            created_by="ana",
            created_at=now,
            updated_at=now,
        )
        await self.services.database.write(create_api_client, client)
        return {"client_id": client.client_id, "client_secret": secret}

    async def access_token(self, *scopes: Scope) -> str:
        """Store an API client, and return an access token that the API has issued to it."""
        form = {"grant_type": "client_credentials", **await self.client_credentials(*scopes)}
        response = await self.client.post("/oauth/token", data=form)
        assert response.status == 200, await response.text()
        return (await response.json())["access_token"]

    async def token(self, **lifetime: float) -> str:
        """Issue an admin token, and return it."""
        expires_in = timedelta(**lifetime or {"hours": 1})
        issue = self.services.admins.issue
        return await self.services.database.write(issue, name="ana", expires_in=expires_in)

    async def reader(self) -> dict[str, str]:
        """Return headers that may read incidents."""
        return {"X-API-Key": await self.key(Scope.INCIDENTS_READ)}

    async def analyst(self) -> dict[str, str]:
        """Return headers that may do everything but administer."""
        return {"X-API-Key": await self.key(*Scope)}

    async def admin(self) -> dict[str, str]:
        """Return headers of an admin."""
        return {"Authorization": f"Bearer {await self.token()}"}


def destination_parts(
    settings: Settings,
    database: Database,
    vault: Vault,
    clock,
    configuration: Configuration = CONFIGURATION,
) -> dict:
    """Return what the API needs for the sake of destinations, as a node would make it."""
    maker = PluginFactory(clock, settings.public_url)
    channels = ChannelFactory(configuration, maker, vault.decrypt, settings.allow_networks)
    renderer = Renderer(configuration.template_paths)
    return {
        "destinations": DestinationServices.build(
            channels, renderer, database, clock, vault.encrypt
        ),
    }


async def make_inbox(database: Database, clock) -> PushInbox:
    """Return what takes pushes to one provider."""
    written = {"plugin": "push", "format": PUSH_FORMAT, "token": PUSH_TOKEN, "secret": PUSH_SECRET}
    settings = Push.Settings.model_validate(written, context=SettingsOrigin().context())
    tools = Tools(name=PUSHED, http=None, clock=clock, log=structlog.get_logger(), public_url=URL)
    provider = Push(settings, tools)
    await provider.start()
    return PushInbox([provider], SyncContext(database, clock, Notifiers(), URL))


def make_enriching(database: Database, clock) -> IncidentEnricher:
    """Return what enriches incidents, with nobody to ask."""
    return IncidentEnricher(Enrichers({}, Environment(), database, clock), database, {})


@cache
def _make_settings(given: tuple[tuple[str, object], ...]) -> Settings:
    """Return frozen settings, which tests share: to make them takes longer than most requests."""
    return Settings(**dict(given))


@asynccontextmanager
async def open_api(
    database: Database,
    clock,
    configuration: Configuration = CONFIGURATION,
    replica: ReadReplica | None = None,
    **settings: object,
) -> AsyncIterator[Api]:
    """Return an API with these settings, limits that no test meets by accident, and a client."""
    roles = {"api": True}
    limits = ("rate_limit", "rate_burst", "auth_failure_limit")
    wide = {**dict.fromkeys(limits, 1_000_000), "allow_networks": "127.0.0.0/8"}
    made = _make_settings(tuple({"base_url": URL, **wide, **settings}.items()))
    vault = Vault(ENCRYPTION_KEY, source="test")
    await database.write(_store_signing_key, clock.now())
    parts = destination_parts(made, database, vault, clock, configuration)
    inbox = await make_inbox(database, clock)
    enriching = make_enriching(database, clock)
    async with open_api_runtime(
        made,
        database,
        vault,
        clock,
        **parts,
        inbox=inbox,
        enricher=enriching,
        metrics=Metrics(clock),
        node=NodeStatus(roles, absent=configuration.absent, probe=DatabaseProbe(database)),
        is_shared=False,
        inventory=configuration.inventory,
        providers=PROVIDERS,
        replica=replica,
    ) as door:
        api = Api(door, roles)
        async with TestClient(ApiServer(make_app(door.services))) as client:
            api.client = client
            yield api


@pytest.fixture
async def api(database: Database, clock) -> AsyncIterator[Api]:
    async with open_api(database, clock) as api:
        yield api


async def problem(response, status: int) -> dict:
    """Return the problem document of this status that the response must be."""
    assert response.status == status, await response.text()
    assert response.content_type == "application/problem+json"
    document = await response.json()
    ProblemDocument.model_validate(document, strict=True)
    assert document["status"] == status
    assert document["instance"] == response.url.raw_path
    assert response.headers["X-Request-Id"]
    assert ("WWW-Authenticate" in response.headers) == (status == 401)
    return document

"""Runtime of the API: its services, built from the settings, and its background loops."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, NotRequired, TypedDict, Unpack

import structlog
from ulid import ULID

from tocsin.audit import SEAL, Refusals, Sealer
from tocsin.clock import Clock
from tocsin.credentials import (
    Admins,
    Authenticator,
    Hasher,
    KeyRows,
    Oidc,
    Usage,
    Vault,
    end_sessions_by_kind,
    open_ceremonies,
    open_oidc,
    open_tokens,
)
from tocsin.delivery import (
    DestinationServices,
)
from tocsin.enrichment import IncidentEnricher
from tocsin.erasure import Eraser
from tocsin.incidents import DOCUMENT_VERSION, ProviderFacts, PushInbox
from tocsin.limits import BucketSynchronizer, Quota
from tocsin.loops import run_forever
from tocsin.metrics import Metrics
from tocsin.model import Marking
from tocsin.observables import Environment
from tocsin.registry import PluginInventory
from tocsin.settings import Settings
from tocsin.store import Database, ReadReplica, load_epochs
from tocsin.web.client_addresses import ClientAddresses
from tocsin.web.context import ApiServices, NodeStatus
from tocsin.web.etags import ResponseTags
from tocsin.web.rate_limits import ApiRateLimits, PushAttemptLimits, WebhookLimits
from tocsin.web.refusals import RefusalMeter

_log = structlog.get_logger()
_HOUR = timedelta(hours=1)


class NodeServices(TypedDict):
    """Services of the node that the API uses, as in `ApiServices`."""

    destinations: DestinationServices
    inbox: PushInbox
    enricher: IncidentEnricher
    metrics: Metrics
    node: NodeStatus
    inventory: NotRequired[PluginInventory]
    environment: NotRequired[Environment]
    markings: NotRequired[Mapping[str, Marking]]
    no_investigator: NotRequired[str | None]
    providers: NotRequired[Sequence[ProviderFacts]]
    replica: NotRequired[ReadReplica | None]


@dataclass(frozen=True, slots=True)
class ApiRuntime:
    """The services of the API, and their background loops."""

    services: ApiServices
    usage: Usage
    sealer: Sealer
    sharing: BucketSynchronizer | None
    """None if no other node can share the database."""

    def loops(self) -> list[Coroutine[Any, Any, None]]:
        """Return the background loops, which run until they are cancelled."""
        services = self.services
        loops: list[Coroutine[Any, Any, None]] = [
            self.usage.run(),
            self.sealer.run(),
            services.refusals.run(services.database),
            *services.inbox.loops(),
            run_forever(self._renew_keys, services.clock, "signing key renewal", pause=_HOUR),
        ]
        if services.replica is not None:
            loops.append(services.replica.run())
        return loops if self.sharing is None else [*loops, self.sharing.run()]

    async def finish(self) -> None:
        """Write what is still in memory; a failure of one part does not stop the others."""
        refusals = self.services.refusals
        pushes = self.services.inbox.flush
        for write in (
            self.usage.flush,
            partial(refusals.flush, self.services.database),
            pushes,
        ):
            await _flush_safely(write)
        await _flush_safely(self.sealer.seal)

    async def _renew_keys(self) -> None:
        await self.services.database.write(self.services.access_tokens.prepare)


async def _flush_safely(write: Callable[[], Awaitable[object]]) -> None:
    try:
        await write()
    except Exception:  # noqa: BLE001 - the shutdown continues
        _log.exception("flush at shutdown failed")


@asynccontextmanager
async def open_api_runtime(
    settings: Settings,
    database: Database,
    vault: Vault,
    clock: Clock,
    *,
    is_shared: bool,
    archive: Path | None = None,
    **offered: Unpack[NodeServices],
) -> AsyncIterator[ApiRuntime]:
    """Open the services so that they can issue tokens, and close them when the context ends.

    `is_shared` states whether other nodes can share the database.
    """
    async with AsyncExitStack() as stack:
        hasher = Hasher(clock)
        stack.callback(hasher.close)
        oidc = open_oidc(settings, vault, clock, stack)
        usage = Usage(database, clock)
        [first_epoch, *_] = await database.read(load_epochs)
        services = _build_services(
            settings=settings,
            database=database,
            vault=vault,
            clock=clock,
            hasher=hasher,
            usage=usage,
            oidc=oidc,
            tags=ResponseTags(settings.public_url, DOCUMENT_VERSION, first_epoch.id),
            archive=archive,
            offered=offered,
        )
        await database.write(services.access_tokens.prepare)
        if oidc.sign_in is None:  # end sessions from an earlier issuer
            await database.write(end_sessions_by_kind, "oidc")
        buckets = services.rate_limits.buckets
        sharing = (
            BucketSynchronizer(buckets, database, clock, node=str(ULID())) if is_shared else None
        )
        yield ApiRuntime(services, usage, Sealer(database, vault.derive(SEAL), clock), sharing)


def _build_services(
    *,
    settings: Settings,
    database: Database,
    vault: Vault,
    clock: Clock,
    hasher: Hasher,
    usage: Usage,
    oidc: Oidc,
    tags: ResponseTags,
    archive: Path | None,
    offered: NodeServices,
) -> ApiServices:
    admins = Admins(vault, clock)
    tokens, token = open_tokens(settings, vault, clock), settings.metrics_token
    failures = Quota(settings.auth_failure_limit, burst=settings.auth_failure_limit)
    rate_limits = ApiRateLimits(Quota(settings.rate_limit, settings.rate_burst), failures, clock)
    addresses = ClientAddresses(settings.trusted_proxies)
    return ApiServices(
        database=database,
        clock=clock,
        hasher=hasher,
        eraser=Eraser(database, vault, clock, settings.data_dir, archive),
        admins=admins,
        access_tokens=tokens,
        authenticator=Authenticator(
            hasher=hasher,
            admins=admins,
            access_tokens=tokens,
            usage=usage,
            clock=clock,
            issuer=oidc.issuer,
        ),
        key_rows=KeyRows(hasher, usage, clock),
        tags=tags,
        passkeys=open_ceremonies(settings.public_url, settings.port, vault, clock),
        oidc_sign_in=oidc.sign_in,
        rate_limits=rate_limits,
        refusals=Refusals(clock, RefusalMeter(offered["metrics"]).count),
        addresses=addresses,
        push_attempt_limits=PushAttemptLimits(rate_limits, addresses, clock),
        webhook_limits=WebhookLimits(rate_limits, addresses, clock),
        metrics_token=None if token is None else token.get_secret_value(),
        public_url=settings.public_url,
        issuer_url=settings.issuer_url,
        key_prefix=settings.key_prefix,
        cors_origins=settings.cors_origins,
        **offered,
    )

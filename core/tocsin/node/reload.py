"""Reload of a running node's files: settings, secrets, templates and `plugins.toml`.

A reload follows a SIGHUP (`tocsin.cli.serve` handles signals; in a terminal, this one stops the
node), a request to `POST /api/admin/reload`, and a change of a file that contains a secret.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import structlog
from sqlalchemy import Connection

from tocsin import audit
from tocsin.credentials import Vault, open_proven_vault
from tocsin.delivery import (
    ChannelFactory,
    DestinationServices,
    Renderer,
)
from tocsin.errors import ConfigurationError, ConfigurationProblem, OperatorError
from tocsin.hookspecs import Provider
from tocsin.incidents import DriftGauges, describe_providers
from tocsin.loops import raise_if_cancelled, run_forever
from tocsin.metrics import Metrics
from tocsin.model import Marking
from tocsin.net import GuardedClient
from tocsin.node.components import (
    explain_missing_investigator,
    list_absent_providers,
    make_sync_loops,
    replace_investigator,
)
from tocsin.node.configuration import plan_file, settle_configuration
from tocsin.node.digests import (
    digest_destinations,
    digest_plugins,
    digest_templates,
)
from tocsin.node.plugin_changes import (
    PreparedPlugins,
    prepare_plugins,
    replace_items,
    select_names,
)
from tocsin.node.secret_files import SecretFiles, load_file_destinations
from tocsin.node.service_manager import ServiceManager
from tocsin.observables import Environment, replace_environment
from tocsin.registry import (
    Configuration,
    PluginFactory,
    load_configuration,
)
from tocsin.settings import PREFIX, NodeRole, Settings
from tocsin.web import ReloadResult

if TYPE_CHECKING:
    from tocsin.node.process import ServiceNode

WATCH_INTERVAL = timedelta(seconds=5)
"""How often secret files are checked for changes."""
_RELOADED_SETTINGS = frozenset({"encryption_key", "metrics_token", "oidc_client_secret"})
_log = structlog.get_logger()


class Reloader:
    """Rereads the files of a node, and restarts only the parts that have changed.

    A file with a mistake changes nothing. The parts that everything shares (the environment, the
    markings, the plugins by name) are changed in place.
    """

    def __init__(
        self,
        node: ServiceNode,
        *,
        factory: PluginFactory,
        channels: ChannelFactory,
        environment: Environment,
        markings: dict[str, Marking],
        vault: Vault,
        gauges: DriftGauges,
        metrics: Metrics,
        is_alone: bool,
    ) -> None:
        self._node = node
        self._factory = factory
        self._channels = channels
        self._environment = environment
        self._markings = markings
        self._vault = vault
        self._gauges = gauges
        self._failed = metrics.gauge(
            "tocsin_reload_failed",
            "1 if the last reload failed and the previous configuration is in use, otherwise 0",
        )
        self._is_alone = is_alone
        self._settings = node.settings
        self._retention = node.configuration.retention
        self._intake = node.configuration.file.intake
        self._plugin_digests = digest_plugins(node.configuration)
        self._template_digest = digest_templates(node.configuration)
        self._destination_digests: dict[str, object] = {}
        self._secret_files = SecretFiles(node)
        self._retired: list[GuardedClient] = []
        self._lock = asyncio.Lock()

    async def start(self) -> None:
        """Record the files as they are when the node starts."""
        self._destination_digests = await self._digest_destinations(self._channels)
        await self._secret_files.record(self._settings, self._channels)

    async def close(self) -> None:
        """Close what was replaced."""
        await asyncio.gather(*(client.close() for client in self._retired))

    async def run(self, requested: asyncio.Event, manager: ServiceManager) -> None:
        """Reload when `requested` is set, until cancelled."""
        while True:
            await requested.wait()
            requested.clear()
            manager.report_reload()
            problem = await self._try(secrets_only=False)
            manager.report_reloaded(problem)
            raise_if_cancelled()

    async def watch(self) -> None:
        """Reload secret files as soon as they change, until cancelled."""
        await run_forever(self._watch_step, self._node.clock, "watching files with secrets")

    async def _watch_step(self) -> None:
        await self._node.clock.sleep(WATCH_INTERVAL)
        if await self._secret_files.have_changed(self._settings, self._channels):
            await self._try(secrets_only=True)

    async def _try(self, *, secrets_only: bool) -> str | None:
        """Reload the files; log and return the problems, or return None."""
        try:
            result = await self.reload(secrets_only=secrets_only)
            if result.changed:
                await self._node.database.write(self._record, result.changed)
        except OperatorError as error:
            _log.error("reload failed; nothing was changed", problems=str(error).splitlines())
            return str(error)
        except Exception as error:  # noqa: BLE001 - the node works on with what it has
            _log.exception("reload failed")
            return repr(error)
        return None

    def _record(self, connection: Connection, changed: Iterable[str]) -> None:
        target, details = f"node:{self._node.state.name}", {"changed": list(changed)}
        now = self._node.clock.now()
        audit.record_local(connection, now, "system", "node.reload", target=target, details=details)

    async def reload(self, *, secrets_only: bool = False) -> ReloadResult:
        """Reread the files; with `secrets_only`, only files that contain secrets.

        Raises OperatorError with every problem. In this case, nothing has changed.
        """
        try:
            result = await self._reload(secrets_only=secrets_only)
        except Exception:
            self._failed.set(1)
            raise
        self._failed.set(0)
        return result

    async def _reload(self, *, secrets_only: bool) -> ReloadResult:
        async with self._lock:
            node = self._node
            settings = node.reread()
            vault = await open_proven_vault(settings, node.database)
            is_rekeyed = self._vault.replace_keys(vault)  # these work, whatever else is wrong
            configuration = await load_configuration(
                settings.plugins_file,
                templates_dir=settings.templates_dir,
                file=node.configuration.file if secrets_only else None,
            )
            channels = ChannelFactory(
                configuration, self._factory, self._vault.decrypt, settings.allow_networks
            )
            renderer = await self._prepare_renderer(configuration, secrets_only=secrets_only)
            plan = await node.database.read(plan_file, configuration)
            if not self._is_alone:
                await self._check_destinations(channels)
            running = node.state.plugins.clients.keys()
            prepared = await prepare_plugins(
                configuration, self._factory, self._plugin_digests, running
            )
            try:
                node.state.drift = await settle_configuration(
                    configuration, node.database, node.clock.now(), alone=self._is_alone
                )
            except BaseException:
                await prepared.close()
                raise
            unused = [] if configuration.retention == self._retention else ["retention"]
            unused += [] if configuration.file.intake == self._intake else ["intake"]
            changed = [f"{step.section}.{step.name}" for step in plan] if self._is_alone else []
            changed += await self._take_over(configuration, prepared)
            changed += self._use_templates(channels, renderer)
            changed += await self._restart_destinations(channels)
            changed += self._use_settings(settings)
            changed += [f"{PREFIX}ENCRYPTION_KEY"] if is_rekeyed else []
            await self._secret_files.record(self._settings, channels)
        result = ReloadResult(
            changed=sorted(set(changed)),
            restart_required=self._list_unused_settings(settings) + unused,
            drift=node.state.drift,
        )
        facts = {"changed": result.changed, "restart_required": result.restart_required}
        _log.info("reloaded", **facts)
        return result

    async def _prepare_renderer(
        self, configuration: Configuration, *, secrets_only: bool
    ) -> tuple[Renderer, object] | None:
        """Return a renderer for changed templates, and their digest.

        Raises ConfigurationError if one is invalid.
        """
        if secrets_only:
            return None
        digest = await asyncio.to_thread(digest_templates, configuration)
        if digest == self._template_digest:
            return None
        folder = configuration.templates_dir
        renderer = Renderer(configuration.template_paths, folder)
        if folder is not None:
            broken = await asyncio.to_thread(lambda: list(renderer.find_broken(folder)))
            if broken:
                raise ConfigurationError(
                    [
                        ConfigurationProblem(str(folder), "", each, "fix this template")
                        for each in broken
                    ]
                )
        return renderer, digest

    async def _check_destinations(self, channels: ChannelFactory) -> None:
        """Raise ConfigurationError if a destination that works here would have no settings."""
        problems = []
        for destination in await load_file_destinations(self._node.database):
            try:
                channels.settle(destination)
            except OperatorError as error:
                if destination.name in self._node.workers.pool.running:
                    key = f"destinations.{destination.name}"
                    expected = "correct the settings of this destination"
                    problems.append(ConfigurationProblem("database", key, str(error), expected))
        if problems:
            raise ConfigurationError(problems)

    async def _take_over(
        self, configuration: Configuration, prepared: PreparedPlugins
    ) -> list[str]:
        """Use the prepared plugins in place of the earlier ones."""
        node, plugins = self._node, self._node.state.plugins
        changed = sorted(prepared.changed)
        if configuration.environment != node.configuration.environment:
            replace_environment(self._environment, configuration.environment)
            changed.append("environment")
        replace_items(self._markings, configuration.markings)
        await self._replace_providers(prepared)
        investigations = node.workers.investigations
        prepared.update("enrichers", plugins.enrichers)
        investigations.enrichers.replace(plugins.enrichers)
        if "investigator" in prepared.changed:
            [plugins.investigator] = prepared.select("investigator").values() or [None]
            replace_investigator(investigations.worker, plugins.investigator)
        plugins.absent[:] = prepared.absent
        replace_items(investigations.absent_providers, list_absent_providers(plugins))
        await self._retire(prepared)
        node.configuration = configuration
        self._plugin_digests = prepared.digests
        facts = describe_providers(configuration, plugins.absent)
        self._gauges.show_retirements({each.name: each.retirements for each in facts})
        services = node.api.services
        services.providers = facts
        services.inventory = configuration.inventory
        services.no_investigator = explain_missing_investigator(plugins)
        return changed

    async def _replace_providers(self, prepared: PreparedPlugins) -> None:
        workers, plugins = self._node.workers, self._node.state.plugins
        changed = select_names("providers", prepared.changed)
        started: dict[str, Provider] = prepared.select("providers")
        ended = [f"{prefix}{name}" for prefix in ("", "intake ", "closures ") for name in changed]
        await workers.syncs.replace(ended, {})
        prepared.update("providers", plugins.providers)
        workers.inbox.replace(changed, started.values())
        await workers.investigations.write_backs.replace(plugins.providers)
        syncs = make_sync_loops(started.values(), workers.context, workers.read)
        readers = workers.inbox.make_readers(started.values())
        closers = workers.closures.make_loops(started.values())
        await workers.syncs.replace((), {**syncs, **readers, **closers})

    async def _retire(self, prepared: PreparedPlugins) -> None:
        """Close what the previous reload replaced, whose requests have had time to finish."""
        clients = self._node.state.plugins.clients
        await self.close()
        self._retired = [clients.pop(path) for path in prepared.changed & clients.keys()]
        clients.update({path: live.client for path, live in prepared.started.items()})

    def _use_templates(
        self,
        channels: ChannelFactory,
        renderer: tuple[Renderer, object] | None,
    ) -> list[str]:
        node = self._node
        used = node.workers.pool.renderer
        if renderer is not None:
            used, self._template_digest = renderer
        node.workers.pool.replace(channels.make, used)
        node.api.services.destinations = DestinationServices.build(
            channels, used, node.database, node.clock, self._vault.encrypt
        )
        self._channels = channels
        return [] if renderer is None else ["templates"]

    async def _restart_destinations(self, channels: ChannelFactory) -> list[str]:
        """Restart the destinations whose settings or secrets have changed."""
        before, after = self._destination_digests, await self._digest_destinations(channels)
        changed = [name for name, digest in after.items() if digest != before.get(name, digest)]
        self._destination_digests = after
        node = self._node
        if NodeRole.DELIVER in node.settings.roles and node.state.suspension is None:
            await node.workers.pool.restart(changed)
        return [f"destinations.{name}" for name in changed]

    async def _digest_destinations(self, channels: ChannelFactory) -> dict[str, object]:
        known = await load_file_destinations(self._node.database)
        return await asyncio.to_thread(digest_destinations, known, channels, self._folder)

    @property
    def _folder(self) -> Path:
        return self._node.configuration.path.parent

    def _use_settings(self, settings: Settings) -> list[str]:
        """Use the secrets of the service that can change while it runs."""
        changed = self._list_changed_settings(settings) & _RELOADED_SETTINGS
        services, token = self._node.api.services, settings.metrics_token
        if "metrics_token" in changed:
            services.metrics_token = None if token is None else token.get_secret_value()
        secret = settings.oidc_client_secret
        if "oidc_client_secret" in changed and services.oidc_sign_in is not None:
            services.oidc_sign_in.replace_secret(
                None if secret is None else secret.get_secret_value()
            )
        self._settings = self._settings.model_copy(
            update={name: getattr(settings, name) for name in changed}
        )
        return [f"{PREFIX}{name.upper()}" for name in changed]

    def _list_unused_settings(self, settings: Settings) -> list[str]:
        names = self._list_changed_settings(settings) - _RELOADED_SETTINGS
        return sorted(f"{PREFIX}{name.upper()}" for name in names)

    def _list_changed_settings(self, settings: Settings) -> set[str]:
        names = Settings.model_fields
        return {name for name in names if getattr(settings, name) != getattr(self._settings, name)}

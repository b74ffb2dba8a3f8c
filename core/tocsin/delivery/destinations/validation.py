"""Validation of destinations that are created or changed over HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import structlog
from pydantic import ValidationError

from tocsin.delivery.destinations.catalog import ChannelOffer, list_channel_offers
from tocsin.delivery.destinations.channels import ChannelFactory, find_outside
from tocsin.delivery.destinations.lifecycle import DestinationSpec
from tocsin.delivery.destinations.repository import Destination
from tocsin.errors import OperatorError, Refused, TocsinError, TryLater
from tocsin.fields import SettingsOrigin
from tocsin.hookspecs import Channel
from tocsin.registry import ManagedBy
from tocsin.validation import explain_errors, list_choices, suggest_nearest, suggest_provider

Encrypt = Callable[[bytes], bytes]
RecordContact = Callable[[str, list[str]], Awaitable[None]]
"""Records that Tocsin is about to contact a destination's servers: its name, and the servers."""

_PATIENCE = 10  # seconds; a slow receiver is not a problem of the settings
_MOST_PROBLEMS = 50
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class DestinationProblem:
    """A problem with a requested destination: its dotted path and a description."""

    path: str
    detail: str


class InvalidDestinationError(TocsinError):
    """The requested destination is invalid; `wrong` contains all problems."""

    def __init__(self, wrong: Iterable[DestinationProblem]) -> None:
        self.wrong = tuple(wrong)
        super().__init__("; ".join(f"{problem.path}: {problem.detail}" for problem in self.wrong))


class DestinationValidator:
    """Validates requested destinations, and encrypts their secrets."""

    def __init__(self, channels: ChannelFactory, encrypt: Encrypt) -> None:
        self._channels = channels
        self._encrypt = encrypt
        self._receivers = channels.receivers

    async def validate_new(
        self, name: str, plugin: str, given: Mapping[str, Any], record_contact: RecordContact
    ) -> DestinationSpec:
        """Return the validated destination; raise InvalidDestinationError with all problems.

        These include problems that the plugin reports. Tocsin calls `record_contact` before it
        contacts the destination's servers. Null values count as missing.
        """
        kind = self._require_channel(plugin)
        table = {field: value for field, value in given.items() if value is not None}
        settings = self._validate(kind, plugin, table)
        return await self._build_spec(name, kind, settings, table, record_contact)

    async def _build_spec(
        self,
        name: str,
        kind: type[Channel],
        settings: Channel.Settings,
        table: dict[str, Any],
        record_contact: RecordContact,
    ) -> DestinationSpec:
        plugin = settings.plugin
        secrets = {field: table.pop(field) for field in kind.Settings.secret_fields() & set(table)}
        encrypted = self._encrypt(json.dumps(secrets).encode()) if secrets else None
        written = DestinationSpec(name, plugin, table, ManagedBy.API, encrypted)
        await record_contact(name, sorted(set(settings.targets().values())))
        if problems := await self._try_out(written):
            raise InvalidDestinationError(_place_problems(kind, problems))
        return written

    async def validate_change(
        self, destination: Destination, given: Mapping[str, Any], record_contact: RecordContact
    ) -> DestinationSpec:
        """Return the destination with these settings replaced, and null ones removed.

        Secrets that are not specified are kept. However, if the change leads to another server or
        the encryption key has changed, they must be specified again. Raises the same errors as
        `validate_new`.
        """
        kind, kept = self._require_channel(destination.plugin), self._load_secrets(destination)
        known = {**destination.settings, **kept, **given}
        table = {field: value for field, value in known.items() if value is not None}
        settings = self._validate(kind, destination.plugin, table)
        lost = sorted(kept.keys() - given.keys())
        if lost and (moved := self._describe_move(destination, settings)):
            message = f"enter the secret again or set it to null: secrets are not kept when {moved}"
            raise InvalidDestinationError(
                DestinationProblem(f"settings.{name}", message) for name in lost
            )
        return await self._build_spec(destination.name, kind, settings, table, record_contact)

    def _describe_move(self, destination: Destination, settings: Channel.Settings) -> str | None:
        """Describe how the destination's server changes; None if it does not."""
        try:
            before = self._channels.settle(destination)[1].targets()
        except OperatorError:
            return "the current settings are invalid"
        after = settings.targets()
        for field, target in after.items():
            if before.get(field) != target:
                return f"`{field}` changes from {before.get(field, 'nothing')} to {target}"
        # A URL that is removed leaves the others; a port or a region that is removed has a default
        for field in sorted(before.keys() - after.keys()):
            if "://" not in before[field]:
                return f"`{field}` changes from {before[field]} to its default"
        return None

    def list_targets(self, destination: Destination) -> list[str]:
        """Return the servers of a destination; none if its settings are invalid."""
        try:
            return sorted(set(self._channels.settle(destination)[1].targets().values()))
        except OperatorError:
            return []

    def list_offers(self) -> list[ChannelOffer]:
        """Return the channels that destinations can use on this node, sorted by plugin."""
        return list_channel_offers(self._channels.kinds, self._receivers)

    def describe_settings(self, destination: Destination) -> tuple[dict[str, Any], list[str]]:
        """Return the settings as written, and the names of the secrets that are set.

        Without the plugin, its secret fields are unknown, so only the common settings are shown.
        """
        kind = self._channels.kinds.get(destination.plugin)
        fields = set(destination.settings) - {"plugin"}
        hidden = fields & kind.Settings.secret_fields() if kind else set()
        visible = fields - hidden if kind else fields & set(Channel.Settings.model_fields)
        settings = {name: destination.settings[name] for name in sorted(visible)}
        return settings, sorted(hidden.union(self._load_secrets(destination)))

    def _load_secrets(self, destination: Destination) -> dict[str, Any]:
        """Return the stored secrets by field; none if another encryption key encrypted them."""
        try:
            return self._channels.secrets(destination)
        except OperatorError:
            return {}

    def _require_channel(self, plugin: str) -> type[Channel]:
        kinds = self._channels.kinds
        if (kind := kinds.get(plugin)) is None:
            choices = list_choices(sorted(kinds), "enable a channel plugin in plugins.toml")
            hint = f"{choices}{suggest_nearest(plugin, list(kinds))}"
            raise InvalidDestinationError(
                [DestinationProblem("plugin", f"unknown channel; {hint}")]
            )
        return kind

    def _validate(
        self, kind: type[Channel], plugin: str, table: Mapping[str, Any]
    ) -> Channel.Settings:
        """Return the settings; InvalidDestinationError lists every problem."""
        if "plugin" in table:
            message = "unknown key; set `plugin` next to `settings` when you create a destination"
            raise InvalidDestinationError([DestinationProblem("settings.plugin", message)])
        try:
            settings = kind.Settings.model_validate(
                {"plugin": plugin, **table}, context=SettingsOrigin(None).context()
            )
        except ValidationError as error:
            raise InvalidDestinationError(_list_problems(error, kind)) from None
        wrong = [
            *self._find_outside_networks(settings),
            *self._find_unknown_template(settings),
            *islice(self._find_unknown_providers(settings), _MOST_PROBLEMS),
        ]
        if wrong:
            raise InvalidDestinationError(wrong)
        return settings

    def _find_outside_networks(self, settings: Channel.Settings) -> Iterator[DestinationProblem]:
        allowed = self._channels.allow_networks
        inside = ", ".join(map(str, allowed))
        rule = (
            f"TOCSIN_ALLOW_NETWORKS allows only {inside}"
            if inside
            else "add the network to TOCSIN_ALLOW_NETWORKS, which is not set"
        )
        for place, network in find_outside(settings.allow_networks, allowed).items():
            message = f"found {network}; {rule}"
            yield DestinationProblem(f"settings.allow_networks.{place}", message)

    def _find_unknown_template(self, settings: Channel.Settings) -> Iterator[DestinationProblem]:
        wanted = settings.template
        if wanted not in self._receivers:
            hint = f"{', '.join(self._receivers)}{suggest_nearest(wanted, self._receivers)}"
            yield DestinationProblem(
                "settings.template", f"unknown template {wanted!r}; use one of: {hint}"
            )

    def _find_unknown_providers(self, settings: Channel.Settings) -> Iterator[DestinationProblem]:
        known = self._channels.providers
        for place, wanted in enumerate(settings.providers):
            if wanted not in known:
                message = f"there is no provider {wanted!r}; {suggest_provider(wanted, known)}"
                yield DestinationProblem(f"settings.providers.{place}", message)

    async def _try_out(self, written: DestinationSpec) -> Sequence[str]:
        """Return the problems that the plugin itself reports, except temporary ones."""
        try:
            async with asyncio.timeout(_PATIENCE):
                return await self._check(written)
        except (TryLater, TimeoutError):
            return ()
        except (OperatorError, Refused) as error:
            return (str(error),)
        except Exception:  # noqa: BLE001 - a plugin's bug costs only its own destinations
            _log.exception("plugin failed while checking a destination", destination=written.name)
            return ("the plugin failed; see the log for the reason",)

    async def _check(self, written: DestinationSpec) -> Sequence[str]:
        live = await self._channels.make(written)
        try:
            return (await live.plugin.check()).problems
        finally:
            await live.close()


def _list_problems(error: ValidationError, kind: type[Channel]) -> Iterator[DestinationProblem]:
    for mistake in islice(explain_errors(error, kind.Settings), _MOST_PROBLEMS):
        path = ".".join(("settings", *mistake.path))
        yield DestinationProblem(path, mistake.words)


def _place_problems(kind: type[Channel], problems: Iterable[str]) -> Iterator[DestinationProblem]:
    """Yield the plugin's problems, each at the setting that its text begins with, if any."""
    for problem in problems:
        field, _, message = problem.partition(": ")
        is_named = field in kind.Settings.model_fields
        yield (
            DestinationProblem(f"settings.{field}", message)
            if is_named
            else DestinationProblem("settings", problem)
        )

"""Checks that destinations meet their receivers' contracts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import ValidationError

from tocsin.channels import ObjectChannel
from tocsin.cli.check_report import CheckReport
from tocsin.clock import SystemClock
from tocsin.contracts import CONTRACT, SCHEMA, SettingMismatch, find_all_violations, find_mismatches
from tocsin.delivery import Renderer, build_sample
from tocsin.errors import Misconfigured
from tocsin.fields import SettingsOrigin
from tocsin.hookspecs import Channel
from tocsin.model import EventType
from tocsin.registry import Configuration, ConfiguredPlugin
from tocsin.settings import Settings
from tocsin.validation import suggest_nearest

_TEMPLATE = re.compile(rf"(?:{'|'.join(EventType)})(?:\.[\w-]+)?\.(?:json|txt|html)\.j2")

_SIMILARITY = 0.75  # similarity of two names, one of which is probably a misspelling


def find_unused(
    own_dir: Path, shipped: Sequence[Path], named: set[str]
) -> Iterator[tuple[str, str]]:
    """Yield each unused folder and file whose name resembles a known name, with a hint.

    `shipped` are the folders of plugins, and `named` are the receivers that destinations name. Any
    other unknown name can belong to a custom receiver or template.
    """
    receivers = sorted(
        {folder.name for path in shipped for folder in path.glob("[!_.]*") if folder.is_dir()}
    )
    for folder in sorted(path for path in own_dir.glob("[!_.]*") if path.is_dir()):
        near = suggest_nearest(folder.name, receivers, _SIMILARITY)
        if folder.name not in (*receivers, *named) and near:
            yield str(folder), f"unused{near}"
        else:
            yield from _unused_files(folder, shipped)


def _unused_files(folder: Path, shipped: Sequence[Path]) -> Iterator[tuple[str, str]]:
    theirs = {file.name for path in shipped for file in (path / folder.name).glob("*")}
    known = sorted({*theirs, CONTRACT, SCHEMA, *(f"{event}.json.j2" for event in EventType)})
    for path in sorted(path for path in folder.glob("[!_.]*") if path.is_file()):
        near = suggest_nearest(path.name, known, _SIMILARITY)
        if path.name not in known and not _TEMPLATE.fullmatch(path.name) and near:
            yield str(path), f"unused{near}"


def check_receivers(configuration: Configuration, settings: Settings, report: CheckReport) -> None:
    """Check that each destination fits its receiver, and that samples meet its contract."""
    checker = _ReceiverChecker(configuration, settings)
    for destination in configuration.destinations:
        subject = f"destinations.{destination.name}"
        mismatches = checker.find_setting_mismatches(destination)
        for mismatch in mismatches:
            add = report.hint if mismatch.is_hint else report.fail
            add(f"{subject}.{mismatch.setting}", mismatch.words, names_line=True)
        if all(mismatch.is_hint for mismatch in mismatches):
            for violation in checker.find_violations(destination):
                report.fail(subject, violation)
    if (own_dir := configuration.templates_dir) is not None:
        named = {destination.settings.template for destination in configuration.destinations}
        for path, problem in find_unused(own_dir, configuration.template_paths, named):
            report.hint(path, problem)


class _ReceiverChecker:
    def __init__(self, configuration: Configuration, settings: Settings) -> None:
        self._receivers = configuration.receivers
        self._origin = SettingsOrigin(configuration.path.parent)
        self._renderer = Renderer(configuration.template_paths, configuration.templates_dir)
        self._public_url = settings.public_url

    def find_setting_mismatches(
        self, destination: ConfiguredPlugin[Channel]
    ) -> Sequence[SettingMismatch]:
        """Return the settings that do not fit the receiver.

        Returns nothing if the receiver is unknown, which is a problem of the configuration itself.
        """
        settings = destination.settings
        if settings.template not in self._receivers:
            return []
        try:
            contract = self._renderer.contract(settings.template)
            foreign = list(self._foreign_template(destination))
        except Misconfigured as error:
            return [SettingMismatch("template", str(error))]
        return foreign or ([] if contract is None else find_mismatches(contract, settings))

    def _foreign_template(
        self, destination: ConfiguredPlugin[Channel]
    ) -> Iterator[SettingMismatch]:
        """Yield a mismatch if a channel for one receiver uses the templates of another."""
        settings, own = destination.settings, self._own_template(destination)
        if own in (None, settings.template):
            return
        theirs, ours = self._renderer.contract(settings.template), self._renderer.contract(own)
        if theirs is None or ours is None or theirs.name == ours.name:
            return
        if theirs.channel != settings.plugin:
            found = (
                f"{settings.template!r} is for {theirs.name}, but this channel sends to {ours.name}"
            )
            yield SettingMismatch(
                "template", f"{found}; remove the setting, or use templates for {ours.name}"
            )

    def _own_template(self, destination: ConfiguredPlugin[Channel]) -> str | None:
        """Return the template of a channel that has a single receiver, None for any other."""
        kind, table = destination.kind, destination.table
        if kind is None or "template" not in table:
            return None
        without_template = {name: value for name, value in table.items() if name != "template"}
        try:
            settings = kind.Settings.model_validate(
                without_template, context=self._origin.context()
            )
        except (
            ValidationError
        ):  # the setting is required, so the channel has no template of its own
            return None
        is_own = issubclass(kind, ObjectChannel) or settings.template == settings.plugin
        return settings.template if is_own else None

    def find_violations(self, destination: ConfiguredPlugin[Channel]) -> Sequence[str]:
        """Return the contract violations of sample events, each once with its events."""
        template = destination.settings.template
        if template not in self._receivers:
            return []
        events: dict[str, list[str]] = {}
        for event in destination.settings.events:
            for problem in self._find_violations(destination, event):
                events.setdefault(problem, []).append(event)
        return [f"{template}, {', '.join(them)}: {problem}" for problem, them in events.items()]

    def _find_violations(
        self, destination: ConfiguredPlugin[Channel], event: EventType
    ) -> list[str]:
        receiver, parts = destination.settings.template, (destination.kind or Channel).parts
        happened = build_sample(event, self._public_url, SystemClock().now())
        try:
            contract = self._renderer.contract(receiver)
            rendered = {part: self._renderer.render(receiver, happened, part) for part in parts}
        except Misconfigured as error:
            return [str(error)]
        return [] if contract is None else find_all_violations(contract, rendered)

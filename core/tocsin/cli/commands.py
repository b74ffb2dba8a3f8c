"""Table of the commands; the module of a command is imported when the command is first used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, cast

import typer
from typer.core import TyperCommand, TyperGroup

Command = TyperCommand | TyperGroup


@dataclass(frozen=True, slots=True)
class CommandEntry:
    """One command, or one group of commands."""

    summary: str
    """Description in the list of commands."""
    module: str
    function: str | None = None
    """Name of the function that is the command; None for a group, which is `app` of the module."""


COMMANDS: Mapping[str, CommandEntry] = {
    "init": CommandEntry("Create plugins.toml and the data directory.", "init", "init"),
    "demo": CommandEntry(
        "Run the service with a simulated sensor and webhook receiver.",
        "demo",
        "demo",
    ),
    "serve": CommandEntry("Run the service.", "serve", "serve"),
    "check": CommandEntry(
        "Check the configuration, the database and all connections.", "check", "check"
    ),
    "doctor": CommandEntry(
        "Diagnose problems with the machine, database and configuration.", "doctor", "doctor"
    ),
    "support-bundle": CommandEntry(
        "Collect diagnostics for a support case, without secrets.",
        "support_bundle",
        "support_bundle",
    ),
    "apply": CommandEntry(
        "Apply plugins.toml to the database and list the changes.", "apply", "apply"
    ),
    "providers": CommandEntry("List providers with their sync status and last error.", "providers"),
    "coverage": CommandEntry(
        "List what was recently read from providers and what failed.",
        "providers",
        "coverage",
    ),
    "quarantine": CommandEntry("List and retry records that could not be parsed.", "quarantine"),
    "trace": CommandEntry("Trace an incident from the SIEM to its deliveries.", "trace", "trace"),
    "prove": CommandEntry(
        "Account for everything read and delivered in a period.", "prove", "prove"
    ),
    "search": CommandEntry("Search incidents and investigations.", "search", "search"),
    "incidents": CommandEntry("List, show and triage incidents.", "incidents"),
    "sync": CommandEntry("Backfill time ranges from providers.", "sync"),
    "investigations": CommandEntry("Start, follow and read investigations.", "investigations"),
    "schedules": CommandEntry("Manage recurring investigations.", "schedules"),
    "deliveries": CommandEntry("List, inspect and resend deliveries.", "deliveries"),
    "destinations": CommandEntry("Manage destinations.", "destinations"),
    "suppressions": CommandEntry("Manage suppression rules.", "suppressions"),
    "backup": CommandEntry("Create, verify and restore backups.", "backup"),
    "db": CommandEntry("Upgrade and copy the database, and list its encryption keys.", "database"),
    "admin": CommandEntry("Manage admin tokens, sign-in links and signing keys.", "admin"),
    "keys": CommandEntry("Manage API keys.", "keys"),
    "clients": CommandEntry("Manage API clients.", "clients"),
    "console-sessions": CommandEntry(
        "List and end console sessions of all users.", "console_sessions"
    ),
    "people": CommandEntry("Manage people who sign in to the console with passkeys.", "people"),
    "audit": CommandEntry("List and verify the audit log.", "audit"),
    "erase": CommandEntry("Erase an entity from the database and the archive.", "erase", "erase"),
    "plugins": CommandEntry("List, inspect and create plugins.", "plugins"),
    "templates": CommandEntry("List and render payload templates.", "templates"),
    "completion": CommandEntry(
        "Print a completion script for a shell.", "completion", "completion"
    ),
    "webhooks": CommandEntry("Generate webhook secrets and signing keys.", "webhooks"),
}


class CommandModules(Mapping[str, Command]):
    """The commands by name, each imported when it is first looked up."""

    def __getitem__(self, name: str) -> Command:
        """Return a command of Tocsin or of an enabled plugin; raises KeyError for another name."""
        return _load_command(name)

    def __iter__(self) -> Iterator[str]:
        """Yield the names of all commands."""
        return iter(COMMANDS)

    def __len__(self) -> int:
        """Return the number of commands."""
        return len(COMMANDS)


@cache
def _load_command(name: str) -> Command:
    group = typer.Typer(rich_markup_mode=None)
    if (entry := COMMANDS.get(name)) is None:
        from tocsin.cli.plugin_commands import load_plugin_commands

        group.add_typer(load_plugin_commands(name), name=name)
        return cast("Command", typer.main.get_group(group).commands[name])
    module = import_module(f"tocsin.cli.{entry.module}")
    if entry.function is None:
        group.add_typer(module.app, name=name)
    else:
        group.command(name)(getattr(module, entry.function))
    return cast("Command", typer.main.get_group(group).commands[name])


class CommandGroup(TyperGroup):
    """The root of the command line, which lists its commands without importing them."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = cast("dict[str, Any]", CommandModules())

    def format_commands(self, _context: Any, formatter: Any) -> None:
        """Write the list of commands."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in COMMANDS.items()])

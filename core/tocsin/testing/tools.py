"""What a provider or channel under test is handed."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import structlog

from tocsin.clock import Clock
from tocsin.fields import Origin
from tocsin.hookspecs import Channel, HttpClient, Provider, Tools
from tocsin.net import GuardedClient, open_client
from tocsin.testing.clock import ManualClock

P = TypeVar("P", bound=Provider)


def loopback_client() -> GuardedClient:
    """Return the client that plugins are handed, which may reach this machine; close it."""
    return open_client(allow_hosts=["127.0.0.1"])


def make_tools(http: HttpClient, name: str = "test", clock: Clock | None = None) -> Tools:
    """Return what a plugin is handed; its clock stands still unless another is given."""
    log = structlog.get_logger().bind(provider=name)
    return Tools(name=name, http=http, clock=clock or ManualClock(), log=log)


@asynccontextmanager
async def open_provider(
    kind: type[P], *, clock: Clock | None = None, name: str = "test", **settings: Any
) -> AsyncGenerator[P, None]:
    """Yield a provider of this kind that was started, with a client that may reach this machine.

    The settings are given as in `plugins.toml`, except that secrets are given as text.
    """
    http = loopback_client()
    try:
        provider = kind(make_settings(kind, name, **settings), make_tools(http, name, clock))
        await provider.start()
        yield provider
    finally:
        await http.close()


def make_settings(kind: type[Provider | Channel], name: str, **settings: Any) -> Any:
    """Return checked settings of a kind, given as in `plugins.toml`, with secrets as text."""
    with TemporaryDirectory() as folder:
        secrets = (part for part in settings if part in kind.Settings.secret_fields())
        given = {"plugin": name, **settings}
        given |= {part: _referred(settings[part], Path(folder)) for part in secrets}
        origin = Origin(Path(folder))
        return kind.Settings.model_validate(given, context=origin.context())


def _referred(value: Any, folder: Path) -> Any:
    """Return the reference to a file that holds a secret; of a table, one for each member."""
    if isinstance(value, Mapping):
        return {name: _referred(member, folder) for name, member in value.items()}
    if not isinstance(value, str):
        return value
    path = folder / str(len(list(folder.iterdir())))
    path.write_text(value, encoding="utf-8")
    return {"file": path.name}

"""Health of the servers: whether they can lose a push that they have acknowledged."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta

from nats.js.api import DiscardPolicy, StorageType, StreamInfo

from tocsin import Health, PluginFailure, Tools, TryLater, parse_json
from tocsin_nats.connection import DUPLICATE_SECONDS, MAX_MESSAGE, NatsConnection
from tocsin_nats.settings import NatsSettings

OLDEST = (2, 10)
"""The first version with `sync_interval`."""
_NEARLY_FULL = 0.9
_SILENCE = timedelta(seconds=10)
"""The servers of a cluster send heartbeats every second."""
_HOUR = timedelta(hours=1)
_CONNECT_SECONDS = 5
_POLL_SECONDS = 0.05


async def find_problems(connection: NatsConnection, settings: NatsSettings, tools: Tools) -> Health:
    """Return the health of the servers; raises TryLater if none responds."""
    await _wait_until_connected(connection)
    found = connection.client.connected_server_version
    version = f"{found.major}.{found.minor}.{found.patch}"
    if (found.major, found.minor) < OLDEST:
        needed = ".".join(map(str, OLDEST))
        problem = f"found nats-server {version}; use {needed} or later"
        return Health(detail="", problems=(problem,))
    stream = await connection.load_stream()
    problems = [*_find_stream_problems(stream, settings)]
    problems += [each async for each in _find_sync_problems(stream, settings, tools)]
    if connection.client.max_payload < MAX_MESSAGE:
        payload = connection.client.max_payload
        problems.append(f"found max_payload {payload:,}; use {MAX_MESSAGE:,}, the server's default")
    detail = (
        f"nats-server {version}, replicas: {stream.config.num_replicas}, "
        f"pushes kept: {stream.state.messages:,}"
    )
    return Health(detail=detail, problems=tuple(problems))


async def _wait_until_connected(connection: NatsConnection) -> None:
    for _ in range(int(_CONNECT_SECONDS / _POLL_SECONDS)):
        if connection.is_connected:
            return
        await asyncio.sleep(_POLL_SECONDS)
    raise TryLater(f"no NATS server is connected: {connection.last_error}")


def _find_stream_problems(stream: StreamInfo, settings: NatsSettings) -> Iterator[str]:
    config = stream.config
    if config.storage != StorageType.FILE:
        yield "the stream is in memory; use file storage"
    if config.discard != DiscardPolicy.NEW:
        yield "the full stream would discard accepted pushes; set discard to `new`"
    if not (config.max_age is None or config.max_age == 0):
        kept = timedelta(seconds=config.max_age)
        if kept < settings.keep_for:
            yield (
                f"the stream keeps pushes for {kept / _HOUR:g} h, and `keep_for` is "
                f"{settings.keep_for / _HOUR:g} h; {_edit(settings, '--max-age')}"
            )
    if (config.num_replicas or 1) < settings.replicas:
        yield (
            f"the stream keeps each push on {config.num_replicas or 1} of the servers, and "
            f"`replicas` is {settings.replicas}; {_edit(settings, '--replicas')}"
        )
    yield from _find_space_problems(stream, settings)
    if not config.duplicate_window or config.duplicate_window < DUPLICATE_SECONDS:
        yield (
            f"the stream discards keys too early; set its duplicate window to {DUPLICATE_SECONDS} s"
        )
    if f"{settings.subject}.*" not in (config.subjects or ()):
        yield f"the stream does not contain the subjects {settings.subject}.*"
    for replica in (stream.cluster.replicas or ()) if stream.cluster else ():
        silence = timedelta(microseconds=(replica.active or 0) / 1000)
        if replica.offline or not replica.current or silence > _SILENCE:
            seen = f"{silence.total_seconds():.0f} s ago"
            yield f"the replica {replica.name} is not current; it was last seen {seen}"


def _find_space_problems(stream: StreamInfo, settings: NatsSettings) -> Iterator[str]:
    room, used = stream.config.max_bytes or 0, stream.state.bytes
    if room <= 0:
        return
    if room < settings.max_mib * 2**20:
        yield (
            f"the stream has room for {room // 2**20:,} MiB, and `max_mib` is "
            f"{settings.max_mib:,}; {_edit(settings, '--max-bytes')}"
        )
    if used > _NEARLY_FULL * room:
        yield (
            f"the stream is {used / room:.0%} full; once it is full, Tocsin stores pushes directly "
            "in the database; increase its size, or reduce the time for which it keeps pushes"
        )


def _edit(settings: NatsSettings, option: str) -> str:
    return f"correct the setting, or run `nats stream edit {settings.stream} {option} ...`"


async def _find_sync_problems(
    stream: StreamInfo, settings: NatsSettings, tools: Tools
) -> AsyncIterator[str]:
    """Yield why a server might acknowledge a push before it writes it to the disk.

    A replicated stream does so too, unless `sync_interval` is `always`: when the disks were full,
    servers lost pushes that they had acknowledged.
    """
    needed = max(stream.config.num_replicas or 1, len(settings.servers))
    seen: set[str] = set()
    for url in settings.monitoring:
        try:
            answer = await tools.http.request("GET", f"{url}/jsz?config=true")
            found = parse_json(answer.body)
            config = found["config"]
            seen.add(str(found["server_id"]))
        except PluginFailure as error:
            yield f"monitoring: {url}: {error}"
        except (ValueError, KeyError, TypeError):
            yield f"monitoring: {url} is not the monitoring URL of a NATS server with JetStream"
        else:
            if not (isinstance(config, dict) and config.get("sync_always")):
                yield (
                    f"the server at {url} acknowledges a push before it writes it to the disk; set "
                    "`sync_interval: always` in its `jetstream` block, and restart it"
                )
    if len(seen) < needed:
        yield (
            "`tocsin check` cannot verify that all servers write each push to the disk at once: "
            f"of {needed} servers, {len(seen)} responded at the URLs in `monitoring`; add the "
            "monitoring URL of each server"
        )

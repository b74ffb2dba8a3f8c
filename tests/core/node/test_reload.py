"""Reload of a running node: what changes, what stays, and what a mistake in a file does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Self

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from cryptography.fernet import Fernet
from sqlalchemy import select
from standardwebhooks import Webhook, WebhookVerificationError

from end_to_end.service import Sensor, until
from node_runs import running
from ports import free_port
from tocsin.credentials import Admins, Vault, load_encryption_keys, open_proven_vault
from tocsin.credentials import encryption_keys as encryption_keys_module
from tocsin.credentials import key_rotation as rotation_module
from tocsin.errors import ConfigurationError, OperatorError
from tocsin.node import ServiceNode, secret_files
from tocsin.node import reload as reload_module
from tocsin.node.service_manager import ServiceManager
from tocsin.settings import Settings, load_settings
from tocsin.store.tables import audit

OLD, NEW = "whsec_" + "QUJD" * 10, "whsec_" + "REVG" * 10


class Desk:
    """The folder of a node, its sensors, and a receiver that tells by which key it was called."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.keys: list[str] = []
        self.bodies: list[bytes] = []
        self.edge, self.core = Sensor(folder / "edge.json"), Sensor(folder / "core.json")
        for sensor in (self.edge, self.core):
            sensor.path.touch()
        self.templates = folder / "templates"
        self.templates.mkdir()
        self.write()
        folder.joinpath("secret").write_text(OLD)

    def write(self, **more: str) -> None:
        """Write `plugins.toml`, with further lines for some of its tables."""
        providers = (
            f'[providers.{name}]\nplugin = "suricata"\npath = "{name}.json"\n'
            f'poll_interval = "20ms"\n{more.get(name, "")}\n'
            for name in ("edge", "core")
        )
        self.folder.joinpath("plugins.toml").write_text(
            f'enabled = ["suricata", "webhook"]\n{"".join(providers)}\n[destinations.soc]\n'
            f'plugin = "webhook"\nurl = "http://127.0.0.1:{self.port}/"\n'
            'secret = { file = "secret" }\nallow_networks = ["127.0.0.0/8"]\n'
            f'retry_schedule = ["1s"]\n{more.get("soc", "")}\n{more.get("rest", "")}\n'
        )

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_post("/", self._receive)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port).start()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self._runner.cleanup()

    async def _receive(self, request: web.Request) -> web.Response:
        headers = {name.lower(): value for name, value in request.headers.items()}
        body = await request.read()
        self.bodies.append(body)
        for name, key in (("old", OLD), ("new", NEW)):
            try:
                Webhook(key).verify(body, headers)
            except WebhookVerificationError:
                continue
            self.keys.append(name)
        return web.Response(status=204)

    async def deliver(self, sensor: Sensor) -> str:
        """Have a sensor write an alert, and return the key of its delivery."""
        before = len(self.keys)
        sensor.write(1)
        await until(lambda: len(self.keys) > before)
        return self.keys[-1]


@pytest.fixture
async def desk(tmp_path, monkeypatch) -> AsyncIterator[Desk]:
    monkeypatch.setattr(reload_module, "WATCH_INTERVAL", timedelta(milliseconds=50))
    async with Desk(tmp_path) as desk:
        yield desk


@pytest.fixture
def settings(desk, migrated_url) -> Settings:
    return Settings(
        data_dir=desk.folder / "data",
        database_url=migrated_url.render_as_string(hide_password=False),
        plugins_file=desk.folder / "plugins.toml",
        templates_dir=desk.templates,
        encryption_key="A" * 43 + "=",
        port=free_port(),
    )


async def test_a_rotated_secret_signs_the_next_delivery(desk, settings):
    async with running(settings) as node:
        assert await desk.deliver(desk.edge) == "old"
        providers = dict(node.state.plugins.providers)
        desk.folder.joinpath("secret").write_text("")  # as some editors do for a moment
        await asyncio.sleep(0.2)
        assert await desk.deliver(desk.edge) == "old"
        desk.folder.joinpath("fresh").write_text(NEW)
        desk.folder.joinpath("fresh").rename(desk.folder / "secret")
        await until(lambda: node.workers.pool.running == ["soc"] and _is_reloaded(node))
        assert await desk.deliver(desk.edge) == "new"
        assert node.state.plugins.providers == providers
        query = select(audit.c.actor, audit.c.details).where(audit.c.action == "node.reload")
        [entry] = await node.database.read(lambda connection: connection.execute(query).all())
    assert entry.actor == "system"
    assert "destinations.soc" in str(entry.details)


def _is_reloaded(node: ServiceNode) -> bool:
    """Whether the worker has the secret that is in the file."""
    running = node.workers.pool._running.get("soc")  # none while it is restarted
    return running is not None and running.worker._settings.secret.get_secret_value() == NEW


async def test_a_changed_provider_is_restarted_and_no_other(desk, settings):
    async with running(settings) as node:
        before = dict(node.state.plugins.providers)
        await desk.deliver(desk.edge)
        desk.edge.path = desk.edge.path.rename(desk.folder / "moved.json")
        desk.write(edge='tlp = "amber"', rest="")
        path = desk.folder / "plugins.toml"
        path.write_text(path.read_text().replace("edge.json", "moved.json"))
        assert (await node.state.reload()).changed == ["providers.edge"]
        after = node.state.plugins.providers
        assert after["core"] is before["core"]
        assert after["edge"] is not before["edge"]
        await desk.deliver(desk.core)
        await desk.deliver(desk.edge)
        desk.write(rest='[environment]\ninternal_domains = ["corp.example"]')
        changed = (await node.state.reload()).changed
        assert {"environment", "investigator", "providers.edge"} <= set(changed)
        assert "providers.core" not in changed
        assert node.workers.investigations.worker.investigator is node.state.plugins.investigator
        assert (await node.state.reload()).changed == []


async def test_a_file_with_mistakes_changes_nothing_and_all_of_them_are_said(desk, settings):
    async with running(settings) as node, TestClient(TestServer(node.app)) as client:
        before = dict(node.state.plugins.providers)
        issue = node.api.services.admins.issue
        token = await node.database.write(issue, name="ana", expires_in=timedelta(hours=1))
        headers = {"Authorization": f"Bearer {token}"}
        desk.write(edge="tlp = 7", soc='timeout = "soon"')
        async with client.post("/api/admin/reload", headers=headers) as response:
            assert response.status == 409
            problems = (await response.json())["problems"]
        assert [problem.split(": ")[1] for problem in problems] == [
            "providers.edge.tlp",
            "destinations.soc.timeout",
        ]
        desk.write(edge='tlp = "amber"')
        template = desk.templates / "envelope" / "incident-alert.json.j2"
        template.parent.mkdir()
        template.write_text("{% if %}")
        with pytest.raises(ConfigurationError, match="line 1"):
            await node.state.reload()
        assert node.state.plugins.providers == before
        assert await desk.deliver(desk.edge) == "old"
        template.write_text('{"mine": true}')
        async with client.post("/api/admin/reload", headers=headers) as response:
            assert response.status == 200
            assert (await response.json())["changed"] == ["providers.edge", "templates"]
        async with client.get("/api/admin/audit?action=node.reload", headers=headers) as response:
            [entry] = (await response.json())["entries"]
        assert entry["details"]["changed"] == ["providers.edge", "templates"]
        await desk.deliver(desk.edge)
        assert desk.bodies[-1] == b'{"mine":true}'


async def test_destinations_of_several_nodes_change_by_apply_alone(desk, settings, migrated_url):
    is_shared = migrated_url.get_backend_name() == "postgresql"
    async with running(settings) as node:
        await desk.deliver(desk.edge)
        desk.write(soc='timeout = "9s"')
        result = await node.state.reload()
        assert (result.changed, result.drift) == (
            ([], ["destinations.soc: change"]) if is_shared else (["destinations.soc"], [])
        )
        await desk.deliver(desk.edge)


async def test_the_secrets_of_the_service_are_read_again(desk, settings, monkeypatch):
    file = desk.folder / "token"
    file.write_text("one")
    monkeypatch.setenv("TOCSIN_METRICS_TOKEN_FILE", str(file))
    token = load_settings().metrics_token

    def reread() -> Settings:
        update = {"metrics_token": load_settings().metrics_token}
        if file.read_text() == "three":
            update["retention_days"] = 40
        return settings.model_copy(update=update)

    started = settings.model_copy(update={"metrics_token": token})
    async with running(started, reread=reread) as node, TestClient(TestServer(node.app)) as client:

        async def scrape(token: str) -> int:
            headers = {"Authorization": f"Bearer {token}"}
            async with client.get("/metrics", headers=headers) as response:
                return response.status

        assert await scrape("one") == 200
        file.write_text("two")
        result = await node.state.reload()
        assert (result.changed, result.restart_required) == (["TOCSIN_METRICS_TOKEN"], [])
        assert (await scrape("one"), await scrape("two")) == (401, 200)
        file.write_text("three")
        result = await node.state.reload()
        assert result.restart_required == ["TOCSIN_RETENTION_DAYS"]
        monkeypatch.delenv("TOCSIN_METRICS_TOKEN_FILE")
        assert (await node.state.reload()).changed == ["TOCSIN_METRICS_TOKEN"]
        async with client.get("/metrics") as response:
            assert response.status == 200  # from this machine
        for headers, status in (({"X-Forwarded-For": "192.0.2.1"}, 403), ({"Host": "evil"}, 421)):
            async with client.get("/metrics", headers=headers) as response:
                assert response.status == status


async def test_the_watch_of_secret_files_reads_no_database_while_nothing_changes(
    desk, settings, monkeypatch
):
    async with running(settings) as node:
        await desk.deliver(desk.edge)
        reloader = node.state.reloader
        files, given = reloader._secret_files, (reloader._settings, reloader._channels)
        await files.have_changed(*given)
        loaded = []
        with monkeypatch.context() as patch:
            patch.setattr(secret_files, "load_file_destinations", loaded.append)
            for _ in range(3):
                assert not await files.have_changed(*given)
        assert loaded == []
        desk.folder.joinpath("secret").write_text(NEW)
        await until(lambda: _is_reloaded(node))


async def test_a_new_encryption_key_in_its_file_comes_into_use(desk, settings, monkeypatch):
    """The old one can be removed when it is not needed; an unknown one changes nothing."""
    old, new, strange = (Fernet.generate_key().decode() for _ in range(3))
    file = desk.folder / "key"

    def write(*keys: str) -> None:
        file.with_suffix(".new").write_text("\n".join(keys))
        file.with_suffix(".new").rename(file)

    def reread() -> Settings:
        return settings.model_copy(update={"encryption_key": load_settings().encryption_key})

    write(old)
    monkeypatch.setenv("TOCSIN_ENCRYPTION_KEY_FILE", str(file))
    monkeypatch.setattr(rotation_module, "INTERVAL", timedelta(milliseconds=50))
    monkeypatch.setattr(rotation_module, "PASS_INTERVAL", timedelta(milliseconds=50))
    monkeypatch.setattr(encryption_keys_module, "SETTLED_AFTER", timedelta(milliseconds=200))
    async with running(reread(), reread=reread) as node:
        vault = await open_proven_vault(reread(), node.database)
        issue = Admins(vault, node.clock).issue
        lifetime = timedelta(hours=1)
        await node.database.write(lambda c: issue(c, name="ana", expires_in=lifetime))
        write(new, old)
        result = await node.state.reload()
        assert (result.changed, result.restart_required) == (["TOCSIN_ENCRYPTION_KEY"], [])

        async def count() -> dict[str, str]:
            keys = await node.database.read(load_encryption_keys)
            return {key.id: key.state.value for key in keys}

        async with asyncio.timeout(20):
            while "retired" not in (await count()).values():  # noqa: ASYNC110 - asks a database
                await asyncio.sleep(0.05)
        write(strange)
        with pytest.raises(OperatorError, match="does not match the database"):
            await node.state.reload()
        write(new)
        await node.state.reload()
        assert node.rotation.describe()["reads"] == [Vault(new, source="test").current_id]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_watching_for_requests_ends_also_if_a_reload_swallows_the_cancellation(
    settings, monkeypatch
):
    entered = asyncio.Event()

    async def reload_to_the_end(**_):
        entered.set()
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0.05)

    async with running(settings) as node:
        reloader, requested = node.state.reloader, asyncio.Event()
        monkeypatch.setattr(reloader, "_try", reload_to_the_end)
        watching = asyncio.create_task(reloader.run(requested, ServiceManager()))
        requested.set()
        await entered.wait()
        watching.cancel()
        await asyncio.wait([watching], timeout=5)
        assert watching.cancelled()

"""`tocsin doctor` and `tocsin support-bundle`, over an installation with mistakes and secrets."""

from __future__ import annotations

import asyncio
import json
import tarfile
from datetime import timedelta
from functools import partial
from pathlib import Path

import asyncpg
import pytest
from sqlalchemy import delete, insert, update
from typer.testing import CliRunner

from certificates import Authority
from delivery_rows import add_delivery
from tocsin.cli import app
from tocsin.clock import SystemClock
from tocsin.errors import OperatorError
from tocsin.node import apply_file
from tocsin.registry import load_configuration
from tocsin.settings import NodeRole
from tocsin.store import record_heartbeat
from tocsin.store.tables import destinations, providers, sequences

SECRETS = {
    "file": "whsec_" + "QUJD" * 10,
    "variable": "a-secret-header-of-the-desk",
    "metrics": "a-token-of-prometheus",
    "login": "a-client-secret-of-the-issuer",
    "key": "A" * 42 + "E=",
}


@pytest.fixture
def environment(migrated_url, tmp_path, monkeypatch) -> dict[str, str]:
    """The variables of an installation."""
    authority = Authority(tmp_path)
    tmp_path.joinpath("secret").write_text(SECRETS["file"])
    tmp_path.joinpath("secret").chmod(0o644)
    tmp_path.joinpath("metrics").write_text(SECRETS["metrics"])
    tmp_path.joinpath("metrics").chmod(0o600)
    tmp_path.joinpath("plugins.toml").write_text(
        f"""
        enabled = ["webhook"]
        [destinations.soc]
        plugin = "webhook"
        url = "https://no-such-host.invalid/{SECRETS["variable"]}"
        secret = {{ file = "secret" }}
        headers = {{ Authorization = {{ env = "DESK_TOKEN" }} }}
        ca_file = "{authority.issue("soc.example", age=timedelta(days=2))}"
        [destinations.desk]
        plugin = "webhook"
        url = "https://127.0.0.1:1/"
        secret = {{ file = "secret" }}
        proxy = "http://127.0.0.1:1"
        """
    )
    monkeypatch.setenv("DESK_TOKEN", SECRETS["variable"])
    return {
        "TOCSIN_DATABASE_URL": migrated_url.render_as_string(hide_password=False),
        "TOCSIN_DATA_DIR": str(tmp_path),
        "TOCSIN_PLUGINS_FILE": str(tmp_path / "plugins.toml"),
        "TOCSIN_METRICS_TOKEN_FILE": str(tmp_path / "metrics"),
        "TOCSIN_OIDC_ISSUER": "https://no-such-issuer.invalid",
        "TOCSIN_OIDC_CLIENT_ID": "tocsin",
        "TOCSIN_OIDC_CLIENT_SECRET": SECRETS["login"],
        "TOCSIN_ENCRYPTION_KEY": SECRETS["key"],
        "DESK_TOKEN": SECRETS["variable"],
        "HTTPS_PROXY": "http://127.0.0.1:1",
    }


@pytest.fixture
async def run(environment, database, tmp_path):
    """Run a command of `tocsin`, and return its status and what it printed."""
    now = SystemClock().now()
    configuration = await load_configuration(tmp_path / "plugins.toml")
    await database.write(apply_file, configuration, "test", now)
    roles = [role for role in NodeRole if role is not NodeRole.SCHEDULE]
    await database.write(record_heartbeat, 7, "soc-1:8080", [], now, roles=roles)

    async def run(*arguments: str) -> tuple[int, str]:
        invoke = partial(CliRunner().invoke, app, list(arguments), env=environment)
        result = await asyncio.to_thread(invoke)
        if isinstance(result.exception, OperatorError):
            return 2, str(result.exception)
        assert result.exception is None or isinstance(result.exception, SystemExit), result
        return result.exit_code, result.stdout

    return run


async def test_each_finding_is_named_with_its_remedy(run, tmp_path):
    status, out = await run("doctor", "--json")
    assert status == 1
    findings = json.loads(out)
    found = {(each["area"], each["severity"]): each for each in findings}
    told = json.dumps(findings)
    assert f"{tmp_path}/secret contains a secret and has mode 644" in told
    assert "no-such-host.invalid (destinations.soc) cannot be resolved" in told
    assert "the proxy 127.0.0.1:1 (destinations.desk) is not reachable" in told
    assert "Tocsin ignores these environment variables: HTTPS_PROXY" in told
    assert "the certificate expired on" in found["certificates", "problem"]["found"]
    assert found["database", "ok"]["found"].startswith("the schema is up to date")
    assert all(each["remedy"] for each in findings if each["severity"] != "ok")
    assert not [secret for secret in SECRETS.values() if secret in told]


async def test_the_disk_of_the_archive_is_examined(run, environment, tmp_path):
    environment["TOCSIN_ARCHIVE_DIR"] = str(tmp_path)
    assert f"{tmp_path} (TOCSIN_ARCHIVE_DIR): " in (await run("doctor"))[1]
    with (tmp_path / "plugins.toml").open("a") as file:
        file.write('[retention]\narchive = "/not-created-yet/archive"\n')
    out = (await run("doctor"))[1]
    assert "/ (archive in [retention]: /not-created-yet/archive): " in out
    assert "TOCSIN_ARCHIVE_DIR" not in out


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
async def test_a_database_that_accepts_no_writes_hides_no_other_finding(run, migrated_url):
    outside = await asyncpg.connect(migrated_url.render_as_string(hide_password=False))
    await outside.execute("SET default_transaction_read_only = off")
    name = migrated_url.database
    await outside.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
    try:
        status, out = await run("doctor", "--json")
    finally:
        await outside.execute(f'ALTER DATABASE "{name}" RESET ALL')
        await outside.close()
    findings = json.loads(out)
    assert status == 1
    fault = next(each for each in findings if each["area"] == "database")
    assert fault["found"].startswith("database read-only: cannot execute")
    assert "docs/operators/alerts.md#tocsindatabaseaway" in fault["remedy"]
    assert {"disk", "work", "destinations", "certificates"} <= {each["area"] for each in findings}


async def test_failing_reads_and_deliveries_on_hold_are_found(run, database, tmp_path):
    now = SystemClock().now()
    file = tmp_path / "plugins.toml"
    edge = "[providers.edge]\nplugin = 'suricata'\npath = 'eve.json'\n"
    file.write_text(file.read_text().replace('["webhook"]', '["suricata", "webhook"]') + edge)
    reads = {"name": "edge", "plugin": "suricata", "read_at": now, "failures": 4}
    failure = {"outcome": "later", "reason": "eve.json: Permission denied"}
    lease = {"leased_until": now + timedelta(minutes=1), "poll_ms": 5000}
    await database.write(
        lambda connection: connection.execute(insert(providers).values(**reads, **failure, **lease))
    )
    await database.write(add_delivery, "on_hold", to="desk")
    await database.write(add_delivery, "pending", to="soc")
    gone = update(destinations).where(destinations.c.name == "soc")
    gone = gone.values(state="disabled", reason="gone")
    await database.write(lambda connection: connection.execute(gone).close())
    problems = [
        each["found"]
        for each in json.loads((await run("doctor", "--json"))[1])
        if each["severity"] == "problem"
    ]
    reason = "(later: eve.json: Permission denied)"
    assert f"providers.edge: failed reads in a row: 4 {reason}" in problems
    assert "destinations.desk: deliveries on hold: 1" in problems
    assert "destinations.soc: disabled (gone), but deliveries are waiting" in problems


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
async def test_a_role_that_no_node_has_is_found(run, database):
    async with asyncio.timeout(30):
        presence = asyncio.create_task(database.attend(7, lambda _: heard.set()))
        heard = asyncio.Event()
        await heard.wait()
        _, out = await run("doctor", "--json")
        presence.cancel()
    [finding] = [each for each in json.loads(out) if each["area"] == "roles"]
    assert finding["found"] == "no running node has the role `schedule`"


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
async def test_a_configuration_that_was_never_applied_is_found(run, database):
    name = sequences.c.name == "configuration_applied_from"
    await database.write(lambda connection: connection.execute(delete(sequences).where(name)))
    findings = json.loads((await run("doctor", "--json"))[1])
    [finding] = [each for each in findings if each["remedy"] == "run `tocsin apply`"]
    assert (finding["area"], finding["severity"]) == ("work", "problem")


async def test_a_bundle_is_shown_first_and_holds_no_secret(run, tmp_path):
    log, path = tmp_path / "service.log", tmp_path / "bundle.tar.gz"
    encoded = SECRETS["variable"].encode().hex()
    log.write_text(f"sent {SECRETS['file']} and {encoded} to soc\n")
    status, out = await run("support-bundle", "--output", str(path), "--log", str(log))
    assert (status, path.exists()) == (2, False)
    assert "nothing was written" in out
    status, out = await run("support-bundle", "--output", str(path), "--log", str(log), "--yes")
    assert status == 0, out
    assert path.stat().st_mode & 0o777 == 0o600
    with tarfile.open(path) as archive:
        files = {
            Path(each.name).name: archive.extractfile(each).read().decode() for each in archive
        }
    assert [line.split()[0] for line in out.splitlines()[1:-1]] == list(files)
    assert "no-such-host.invalid" in files["doctor.json"]
    assert "destinations" in files["plugins.json"]
    assert files["service.log"].startswith("sent [secret]")
    everything = "".join(files.values())
    assert not [name for name, secret in SECRETS.items() if secret in everything]
    assert encoded not in everything


async def test_a_configuration_that_cannot_be_read_is_a_finding(run, tmp_path):
    (tmp_path / "plugins.toml").write_text("[destinations")
    status, out = await run("doctor")
    assert status == 1
    assert out.startswith("problem configuration: ")
    assert "→ fix the syntax at this position" in out

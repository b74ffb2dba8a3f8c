"""What an operator sees of the commands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sqlalchemy import update

from delivery_rows import add_destination
from tocsin.store.sqlite import make_engine
from tocsin.store.tables import destinations


@pytest.fixture
def configured(tmp_path: Path) -> Path:
    (tmp_path / "eve.json").touch()
    (tmp_path / "plugins.toml").write_text(
        'enabled = ["suricata"]\n[providers.edge]\nplugin = "suricata"\npath = "eve.json"\n'
    )
    return tmp_path


def test_a_wrong_configuration_ends_with_2_and_starts_nothing(tocsin, tmp_path):
    (tmp_path / "plugins.toml").write_text('enabled = ["suricatta"]\nstrikt = true\n')
    status, out, errors = tocsin("serve")
    assert (status, out) == (2, "")
    assert "did you mean 'strict'?" in errors
    assert "Traceback" not in errors
    assert not (tmp_path / "data").exists()


def test_a_command_says_where_it_looked_for_the_database(tocsin, tmp_path):
    for command in (["admin", "token"], ["coverage"], ["quarantine"]):
        status, out, errors = tocsin(*command)
        assert (status, out) == (2, "")
        assert str(tmp_path / "data" / "tocsin.db") in errors
    assert not (tmp_path / "data" / "tocsin.db").exists()


def test_an_admin_token_is_all_that_is_printed(tocsin):
    tocsin("db", "upgrade")
    status, out, errors = tocsin("admin", "token", "--name", "alice", "--expires-in", "30m")
    assert (status, errors) == (0, "")
    assert out.count(".") == 2
    assert len(out.splitlines()) == 1


def test_a_wrong_lifetime_is_refused_by_its_option(tocsin):
    tocsin("db", "upgrade")
    status, _, errors = tocsin("admin", "token", "--expires-in", "soon")
    assert (status, "--expires-in: found 'soon'" in errors) == (2, True)


def test_check_says_that_all_is_well(tocsin, configured):
    status, out, errors = tocsin("check")
    assert (status, errors) == (0, "")
    assert "configuration valid" in out
    assert "providers.edge: " in out


def test_check_says_how_to_name_the_networks_until_they_are_named(tocsin, configured):
    assert "environment: hint: internal_networks is not set" in tocsin("check")[1]
    file = configured / "plugins.toml"
    named = '[environment]\ninternal_networks = ["10.0.0.0/8"]\n'
    file.write_text(f"{file.read_text()}\n{named}")
    assert "internal_networks" not in tocsin("check")[1]


def test_check_says_what_is_not_well(tocsin, configured):
    (configured / "eve.json").unlink()
    status, _, errors = tocsin("check")
    assert status == 1
    assert "providers.edge: " in errors
    assert not (configured / "data").exists()


MISTAKES = """
enabled = ["webhok", "suricata"]

[providers.edge]
plugin = "suricata"
path = "eve.json"
pth = 1

[destinations.one]
plugin = "webhook"
url = "https://soar.example.com/x"

[destinations.two]
plugin = "wehbook"
url = "https://soar.example.com/x"
secret = { env = "NOT_SET" }
"""


def test_check_names_the_lines_of_all_mistakes_even_if_a_name_is_misspelt(tocsin, configured):
    (configured / "plugins.toml").write_text(MISTAKES)
    status, _, errors = tocsin("check")
    starts = {line.split(": ")[0]: line.split(": ")[1] for line in errors.splitlines()}
    assert status == 2
    assert (
        starts
        | {
            "plugins.toml:2": "enabled",
            "plugins.toml:7": "providers.edge.pth",
            "plugins.toml:9": "destinations.one",
            "plugins.toml:14": "destinations.two.plugin",
            "plugins.toml:16": "destinations.two.secret",
        }
        == starts
    )
    status, text, errors = tocsin("check", "--json")
    document = json.loads(text)
    places = {(result["file"], result["line"]) for result in document["results"]}
    assert (status, errors, document["passed"]) == (2, "", False)
    assert {("plugins.toml", 7), ("plugins.toml", 16)} < places
    (configured / "plugins.toml").write_text("enabled = [")
    status, text, _ = tocsin("check", "--json")
    [result] = json.loads(text)["results"]
    assert (status, "not valid TOML" in result["detail"]) == (2, True)


def test_check_resolves_the_names_of_webhooks(tocsin, configured):
    (configured / "plugins.toml").write_text(
        'enabled = ["webhook"]\n[destinations.soar]\nplugin = "webhook"\n'
        'url = "https://soar.invalid/x"\nsecret = { env = "SECRET" }\n'
    )
    status, _, errors = tocsin("check", SECRET="whsec_" + "QUJD" * 10)
    assert status == 1
    assert "destinations.soar: soar.invalid cannot be resolved: " in errors


SHAPELESS = """
from tocsin import Provider, hookimpl

class Shapeless(Provider):
    async def check(self): {check}
    async def read(self, stream, position, until): yield

@hookimpl
def tocsin_providers(): return Shapeless
"""


@pytest.mark.parametrize(
    ("check", "words"),
    [
        ("return True", "health check failed: `Shapeless.check` (/"),
        ("raise SystemExit(3)", "health check failed: SystemExit(3)"),
        ("raise TypeError('odd')", "health check failed: TypeError('odd')"),
    ],
)
def test_check_tells_of_a_check_that_is_none(tocsin, tmp_path, check, words):
    (tmp_path / "shapeless.py").write_text(SHAPELESS.format(check=check))
    folder = tmp_path / "shapeless-1.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: shapeless\nVersion: 1\n")
    (folder / "entry_points.txt").write_text("[tocsin.providers]\nshapeless = shapeless\n")
    (tmp_path / "plugins.toml").write_text(
        'enabled = ["shapeless"]\n[providers.edge]\nplugin = "shapeless"\n'
    )
    status, _, errors = tocsin("check")
    assert status == 1
    assert f"providers.edge: {words}" in errors


def test_check_judges_the_database_too(tocsin, configured):
    status, _, errors = tocsin("check", TOCSIN_DATABASE_URL="postgresql://u:p@127.0.0.1:1/d")
    assert (status, "database: database unreachable: " in errors) == (1, True)
    assert "sqlalche.me" not in errors


def test_check_asks_what_was_made_over_http(tocsin, configured):
    tocsin("db", "upgrade")
    engine = make_engine(configured / "data" / "tocsin.db")
    with engine.connect() as connection:
        add_destination(connection, "made")
        connection.execute(update(destinations).values(managed_by="api"))
    engine.dispose()
    status, _, errors = tocsin("check")
    assert status == 1
    assert "destinations.made: not loaded: plugin 'webhook' is not available on this node" in errors


@pytest.mark.parametrize(
    "arguments", [["list", "--state", "lost"], ["show", "dlv_1"], ["replay", "dlv_1"]]
)
def test_a_delivery_that_is_not_there_is_said_to_be_none(tocsin, arguments):
    tocsin("db", "upgrade")
    status, out, errors = tocsin("deliveries", *arguments)
    assert (status, out) == (2, "")
    assert "lost" in errors or "dlv_1" in errors


def test_lists_are_lines_of_tabs_or_json(tocsin, configured):
    _, lines, _ = tocsin("plugins", "list")
    names = [line.split("\t")[0] for line in lines.splitlines()]
    _, text, _ = tocsin("plugins", "list", "--json")
    records = json.loads(text)
    assert names == [record["name"] for record in records]
    assert {record["name"] for record in records if record["enabled"]} == {
        "enrichers",
        "investigator",
        "suricata",
        "templates",
    }


def test_the_version_can_be_asked_for(tocsin):
    from importlib.metadata import version

    assert tocsin("--version")[1].strip() == version("tocsin")


def test_a_generated_key_is_its_owners_alone(tocsin, tmp_path):
    tocsin("db", "upgrade")
    tocsin("admin", "token")
    assert (tmp_path / "data" / "encryption.key").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "data" / "tocsin.db").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700


def test_where_the_files_of_a_receiver_lie_is_printed(tocsin, tmp_path):
    (tmp_path / "plugins.toml").write_text(
        'enabled = ["suricata"]\n[providers.edge]\nplugin = "suricata"\n'  # and no path
    )
    mine = tmp_path / "templates/tines/contract.toml"
    mine.parent.mkdir(parents=True)
    mine.touch()
    folder = {"TOCSIN_TEMPLATES_DIR": str(tmp_path / "templates")}
    status, out, _ = tocsin("templates", "files", "tines", **folder)
    paths = list(map(Path, out.splitlines()))
    assert (status, [path for path in paths if path.name == "contract.toml"]) == (0, [mine])
    assert {"body.schema.json", "incident-alert.json.j2"} <= {path.name for path in paths}
    status, _, errors = tocsin("templates", "files", "tinse", **folder)
    assert (status, "did you mean 'tines'?" in errors) == (2, True)

"""Commands of plugins."""

from __future__ import annotations

import pytest

PLUGIN = """
import typer
from tocsin import hookimpl

app = typer.Typer()

@app.command()
def hello(): typer.echo("hello from acme")

@app.command()
def other(): pass

@hookimpl
def tocsin_commands(): {body}
"""


@pytest.fixture
def acme(tmp_path):
    def install(body="return app", enabled='"acme"'):
        (tmp_path / "acme_commands.py").write_text(PLUGIN.format(body=body))
        folder = tmp_path / "acme-1.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1\n")
        (folder / "entry_points.txt").write_text("[tocsin.plugins]\nacme = acme_commands\n")
        (tmp_path / "plugins.toml").write_text(f"enabled = [{enabled}]\n")

    return install


@pytest.mark.full
def test_an_enabled_plugin_adds_commands(tocsin, acme):
    acme()
    status, out, _ = tocsin("acme", "hello")
    assert (status, out) == (0, "hello from acme\n")


def test_a_plugin_that_is_not_enabled_adds_none(tocsin, acme):
    acme(enabled="")
    status, _, errors = tocsin("acme", "hello")
    assert (status, "No such command 'acme'" in errors) == (2, True)


@pytest.mark.full
@pytest.mark.parametrize("body", ["return 7", "raise RuntimeError"])
def test_commands_that_cannot_be_loaded_name_their_plugin(tocsin, acme, body):
    acme(body)
    status, _, errors = tocsin("acme", "hello")
    assert (status, "plugin acme: " in errors, "tocsin_commands" in errors) in {
        (2, True, True),
        (2, True, False),
    }

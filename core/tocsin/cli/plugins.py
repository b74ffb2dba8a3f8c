"""`tocsin plugins`: what is installed."""

from __future__ import annotations

import typer

from tocsin.cli.output import AsJson, print_records
from tocsin.registry import installed_plugins, read_plugins_file
from tocsin.settings import load_settings

app = typer.Typer(no_args_is_help=True, help="What is installed, and what of it is used.")


@app.callback()
def _root() -> None:
    pass


@app.command("list")
def list_plugins(as_json: AsJson = False) -> None:
    """List every installed plugin and whether it is enabled; imports none of them."""
    file, _ = read_plugins_file(load_settings().plugins_file)
    records = [
        {
            "name": plugin.name,
            "offers": "providers" if plugin.group == "tocsin.providers" else "delivery and more",
            "enabled": file.enables(plugin.name),
            "distribution": plugin.distribution,
            "version": plugin.version,
        }
        for plugin in installed_plugins()
    ]
    print_records(records, as_json=as_json)

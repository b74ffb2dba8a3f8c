"""`tocsin templates`: what receivers are sent, and whether they would take it."""

from __future__ import annotations

import asyncio
import sys
from typing import Annotated, Any

import typer

from tocsin.cli.output import AsJson, print_records
from tocsin.clock import SystemClock
from tocsin.contracts import find_breaches
from tocsin.delivery import Renderer
from tocsin.delivery.destinations.sampling import sample
from tocsin.errors import Misconfigured, OperatorError
from tocsin.model import EventType
from tocsin.registry import Configuration, load_configuration
from tocsin.settings import Settings, load_settings
from tocsin.validation import nearest

app = typer.Typer(no_args_is_help=True, help="The bodies that receivers are sent.")


@app.command("list")
def list_all(as_json: AsJson = False) -> None:
    """List the receivers that there are templates for, and what is known of each."""
    configuration, _ = _load()
    renderer = _renderer(configuration)
    records = [_described(renderer, receiver) for receiver in configuration.receivers]
    print_records(records, as_json=as_json)


def _described(renderer: Renderer, receiver: str) -> dict[str, Any]:
    try:
        contract = renderer.contract(receiver)
    except Misconfigured as error:
        raise OperatorError(str(error)) from error
    members = ("name", "idempotency", "tested", "documentation")
    return {"receiver": receiver} | {
        name: None if contract is None else str(getattr(contract, name)) for name in members
    }


@app.command()
def render(
    receiver: Annotated[str, typer.Argument(metavar="RECEIVER", help="Whose templates.")],
    event: Annotated[EventType, typer.Argument(metavar="EVENT", help="Which event.")],
    part: Annotated[str, typer.Option(help="Which part of what is sent.")] = "body",
) -> None:
    """Print what a receiver would be sent for a sample event, and nothing else.

    Exit status 0: it would take it. 1: it would not, or the template fails.
    """
    configuration, settings = _load()
    if receiver not in configuration.receivers:
        names = ", ".join(configuration.receivers)
        hint = nearest(receiver, configuration.receivers)
        raise OperatorError(f"there are no templates for {receiver!r}; name one of: {names}{hint}")
    renderer = _renderer(configuration)
    happened = sample(event, settings.public_url, SystemClock().now())
    try:
        rendered = renderer.render(receiver, happened, part)
        contract = renderer.contract(receiver)
    except Misconfigured as error:
        print(error, file=sys.stderr)
        raise typer.Exit(1) from None
    print(rendered.decode())
    breaches = find_breaches(contract, rendered) if contract and part == "body" else []
    for breach in breaches:
        print(breach, file=sys.stderr)
    if breaches:
        raise typer.Exit(1)


def _load() -> tuple[Configuration, Settings]:
    settings = load_settings()
    loading = load_configuration(settings.plugins_file, templates_dir=settings.templates_dir)
    return asyncio.run(loading), settings


def _renderer(configuration: Configuration) -> Renderer:
    return Renderer(configuration.template_paths, configuration.templates_dir)

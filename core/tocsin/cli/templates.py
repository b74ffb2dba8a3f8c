"""`tocsin templates`: what receivers are sent, and whether they would take it."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from tocsin.cli.output import AsJson, print_records
from tocsin.clock import SystemClock
from tocsin.contracts import BODY, find_all_breaches
from tocsin.delivery import Renderer
from tocsin.delivery.destinations.samples import build_sample
from tocsin.errors import Misconfigured, OperatorError
from tocsin.model import EventType
from tocsin.registry import Configuration, load_configuration
from tocsin.settings import Settings, load_settings
from tocsin.validation import suggest_nearest

app = typer.Typer(no_args_is_help=True, help="What receivers are sent.")


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
def files(receiver: Annotated[str, typer.Argument(metavar="RECEIVER", help="Whose.")]) -> None:
    """Print where the files of a receiver lie that are used: contract, schema and templates.

    Yours are used in place of those of the same name that are shipped.
    """
    configuration, _ = _load()
    _check_receiver(receiver, configuration)
    used: dict[str, Path] = {}
    mine = configuration.templates_dir
    for folder in (*([mine] if mine else ()), *configuration.template_paths):
        for path in (folder / receiver).glob("*"):
            if path.is_file():
                used.setdefault(path.name, path.absolute())
    print(*(used[name] for name in sorted(used)), sep="\n")


def _check_receiver(receiver: str, configuration: Configuration) -> None:
    known = configuration.receivers
    if receiver not in known:
        words = f"there are no templates for {receiver!r}; name one of: {', '.join(known)}"
        raise OperatorError(f"{words}{suggest_nearest(receiver, known)}")


@app.command()
def render(
    receiver: Annotated[str, typer.Argument(metavar="RECEIVER", help="Whose templates.")],
    event: Annotated[EventType, typer.Argument(metavar="EVENT", help="Which event.")],
    part: Annotated[
        str | None, typer.Option(help="Which part of what is sent; by default all of it.")
    ] = None,
) -> None:
    """Print what a receiver would be sent for a sample event, and nothing else.

    Where that has several parts, each has its name above it.

    Exit status 0: it would take it. 1: it would not, or a template fails.
    """
    configuration, settings = _load()
    _check_receiver(receiver, configuration)
    renderer = _renderer(configuration)
    happened = build_sample(event, settings.public_url, SystemClock().now())
    try:
        contract = renderer.contract(receiver)
        parts = (part,) if part else contract.parts if contract else (BODY,)
        rendered = {name: renderer.render(receiver, happened, name) for name in parts}
    except Misconfigured as error:
        print(error, file=sys.stderr)
        raise typer.Exit(1) from None
    for name, content in rendered.items():
        print(*([f"--- {name}"] if len(parts) > 1 else []), content.decode(), sep="\n")
    breaches = find_all_breaches(contract, rendered) if contract else []
    for breach in breaches:
        print(breach, file=sys.stderr)
    if breaches:
        raise typer.Exit(1)


def _load() -> tuple[Configuration, Settings]:
    settings = load_settings()
    loading = load_configuration(
        settings.plugins_file, templates_dir=settings.templates_dir, sections=()
    )
    return asyncio.run(loading), settings


def _renderer(configuration: Configuration) -> Renderer:
    return Renderer(configuration.template_paths, configuration.templates_dir)

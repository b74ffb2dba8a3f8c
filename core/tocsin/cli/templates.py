"""`tocsin templates`: list and render payload templates."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from tocsin.cli.output import AsJson, Columns, Wide, print_json, print_records, print_text
from tocsin.clock import SystemClock
from tocsin.contracts import BODY, find_all_violations
from tocsin.delivery import Renderer, build_sample
from tocsin.errors import Misconfigured, OperatorError
from tocsin.model import EventType
from tocsin.registry import Configuration, load_configuration
from tocsin.settings import Settings, load_settings
from tocsin.validation import suggest_nearest

app = typer.Typer(no_args_is_help=True, help="List and render payload templates.")


_COLUMNS = Columns(
    ("receiver", "name", "idempotency", "tested", "documentation"),
    brief=("receiver", "name", "idempotency", "tested"),
)


@app.command("list")
def list_all(as_json: AsJson = False, wide: Wide = False) -> None:
    """List the receivers that have templates."""
    configuration, _ = _load()
    renderer = _make_renderer(configuration)
    records = [_describe(renderer, receiver) for receiver in configuration.receivers]
    print_records(records, _COLUMNS, as_json=as_json, wide=wide)


def _describe(renderer: Renderer, receiver: str) -> dict[str, Any]:
    try:
        contract = renderer.contract(receiver)
    except Misconfigured as error:
        raise OperatorError(str(error)) from error
    members = ("name", "idempotency", "tested", "documentation")
    return {"receiver": receiver} | {
        name: None if contract is None else str(getattr(contract, name)) for name in members
    }


@app.command()
def files(
    receiver: Annotated[str, typer.Argument(metavar="RECEIVER", help="Name of the receiver.")],
    as_json: AsJson = False,
) -> None:
    """Print the paths of the files used for a receiver.

    Lists the contract, the schema and the templates. A custom file replaces the built-in file with
    the same name.
    """
    configuration, _ = _load()
    _check_receiver(receiver, configuration)
    used: dict[str, Path] = {}
    own_dir = configuration.templates_dir
    for folder in (*([own_dir] if own_dir else ()), *configuration.template_paths):
        for path in (folder / receiver).glob("*"):
            if path.is_file():
                used.setdefault(path.name, path.absolute())
    paths = [used[name] for name in sorted(used)]
    if as_json:
        print_json([str(path) for path in paths])
    else:
        print_text(*paths, sep="\n")


def _check_receiver(receiver: str, configuration: Configuration) -> None:
    known = configuration.receivers
    if receiver not in known:
        message = f"unknown receiver {receiver!r}; use one of: {', '.join(known)}"
        raise OperatorError(f"{message}{suggest_nearest(receiver, known)}")


@app.command()
def render(
    receiver: Annotated[str, typer.Argument(metavar="RECEIVER", help="Name of the receiver.")],
    event: Annotated[
        EventType,
        typer.Argument(metavar="EVENT", help=f"Type of the event: {', '.join(EventType)}."),
    ],
    part: Annotated[
        str | None,
        typer.Option(help="Part of the payload to render. Default: all parts."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Render the payload of a sample event for a receiver.

    If the payload has several parts, prints each part below its name.

    Exit status: 0 if the payload meets the receiver's contract, 1 if it violates the contract or a
    template fails.
    """
    configuration, settings = _load()
    _check_receiver(receiver, configuration)
    renderer = _make_renderer(configuration)
    happened = build_sample(event, settings.public_url, SystemClock().now())
    try:
        contract = renderer.contract(receiver)
        parts = (part,) if part else contract.parts if contract else (BODY,)
        rendered = {name: renderer.render(receiver, happened, name) for name in parts}
    except Misconfigured as error:
        print_text(error, file=sys.stderr)
        raise typer.Exit(1) from None
    if as_json:
        print_json({name: content.decode() for name, content in rendered.items()})
    for name, content in rendered.items() if not as_json else ():
        print_text(*([f"--- {name}"] if len(parts) > 1 else []), content.decode(), sep="\n")
    violations = find_all_violations(contract, rendered) if contract else []
    for violation in violations:
        print_text(violation, file=sys.stderr)
    if violations:
        raise typer.Exit(1)


def _load() -> tuple[Configuration, Settings]:
    settings = load_settings()
    loading = load_configuration(
        settings.plugins_file, templates_dir=settings.templates_dir, sections=()
    )
    return asyncio.run(loading), settings


def _make_renderer(configuration: Configuration) -> Renderer:
    return Renderer(configuration.template_paths, configuration.templates_dir)

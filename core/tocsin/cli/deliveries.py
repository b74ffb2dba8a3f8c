"""`tocsin deliveries`: what arrived where, and if not, why not."""

from __future__ import annotations

from typing import Annotated

import typer

from tocsin.cli.existing import run_on_database
from tocsin.cli.output import AsJson, print_records
from tocsin.clock import SystemClock
from tocsin.delivery import STATES, list_attempts, list_deliveries
from tocsin.delivery import replay as replay_deliveries
from tocsin.errors import OperatorError
from tocsin.settings import load_settings

app = typer.Typer(no_args_is_help=True, help="What arrived where, and if not, why not.")
Destination = Annotated[str | None, typer.Option(help="Only this destination.")]


@app.command("list")
def list_all(
    state: Annotated[str | None, typer.Option(help=f"One of: {', '.join(STATES)}.")] = None,
    destination: Destination = None,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="How many.")] = 50,
    as_json: AsJson = False,
) -> None:
    """List the newest deliveries: their state, and why those rest that did not arrive."""
    if state is not None and state not in STATES:
        raise OperatorError(f"--state: found {state!r}; give one of: {', '.join(STATES)}")
    records = run_on_database(
        load_settings(),
        lambda database: database.read(
            list_deliveries, state=state, destination=destination, limit=limit
        ),
    )
    print_records(records, as_json=as_json)


@app.command()
def show(
    delivery_id: Annotated[str, typer.Argument(metavar="ID", help="The delivery's id.")],
    as_json: AsJson = False,
) -> None:
    """Show every attempt at one delivery, with what the receiver answered."""
    records = run_on_database(
        load_settings(), lambda database: database.read(list_attempts, delivery_id)
    )
    if not records:
        raise OperatorError(f"there is no attempt at a delivery {delivery_id!r}")
    print_records(records, as_json=as_json)


@app.command()
def replay(
    delivery_id: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="One delivery, dead or delivered.")
    ] = None,
    destination: Destination = None,
) -> None:
    """Send again: one delivery, or all that are dead. Prints how many those are."""
    if delivery_id is not None and destination is not None:
        raise OperatorError("give the id of a delivery or --destination, not both")
    replayed = run_on_database(
        load_settings(),
        lambda database: database.write(
            replay_deliveries,
            now=SystemClock().now(),
            delivery_id=delivery_id,
            destination=destination,
        ),
    )
    if not replayed and delivery_id is not None:
        raise OperatorError(f"there is no delivery {delivery_id!r} that rests")
    print(replayed)

"""`tocsin deliveries`: list, inspect and resend deliveries."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, TypeVar

import typer
from sqlalchemy import Connection

from tocsin import delivery
from tocsin.cli.database import record, run_on_database, whoami
from tocsin.cli.options import parse_moment
from tocsin.cli.output import (
    AsJson,
    Columns,
    Wide,
    print_progress,
    print_records,
    print_value,
)
from tocsin.clock import SystemClock, isoformat
from tocsin.delivery import (
    REPLAYABLE_STATES,
    DeliveryFilter,
    DeliveryState,
    NoSuchDeliveryError,
    NoSuchDestinationError,
    NotReplayableError,
)
from tocsin.errors import OperatorError
from tocsin.model import DeliveryType, Vocabulary
from tocsin.settings import load_settings
from tocsin.store import Database

Word = TypeVar("Word", bound=Vocabulary)

app = typer.Typer(no_args_is_help=True, help="List, inspect and resend deliveries.")

_COLUMNS = Columns(
    (
        "id",
        "destination",
        "event_type",
        "subject",
        "state",
        "attempts",
        "due_at",
        "finished_at",
        "reason",
    ),
    brief=("id", "destination", "subject", "state", "reason"),
)
_ATTEMPTS = Columns(
    ("number", "started_at", "duration_ms", "outcome", "status", "reason", "response"),
    brief=("number", "started_at", "outcome", "status", "reason", "response"),
)
Destination = Annotated[str | None, typer.Option(help="Only deliveries to this destination.")]
Event = Annotated[
    str | None, typer.Option(help=f"Only deliveries of this event type: {', '.join(DeliveryType)}.")
]
Since = Annotated[
    str | None,
    typer.Option(
        help="Only deliveries of events since this time, such as 24h (24 hours ago) or "
        "2026-11-21T05:33:01Z."
    ),
]
Until = Annotated[
    str | None,
    typer.Option(
        help="Only deliveries of events before this time, in the same formats as --since."
    ),
]


@app.command("list")
def list_all(
    *,
    state: Annotated[
        str | None, typer.Option(help=f"Only deliveries in this state: {', '.join(DeliveryState)}.")
    ] = None,
    destination: Destination = None,
    event: Event = None,
    subject: Annotated[
        str | None, typer.Option(help="Only deliveries about this subject, such as incident:7.")
    ] = None,
    since: Since = None,
    until: Until = None,
    limit: Annotated[
        int, typer.Option(min=1, max=100_000, help="Maximum number of deliveries.")
    ] = 50,
    as_json: AsJson = False,
    wide: Wide = False,
) -> None:
    """List the newest deliveries with their state and last error."""
    wanted = _filter(destination, event, since, until, subject)
    shown_as = None if state is None else _word(DeliveryState.parse, "--state", state)
    page = run_on_database(
        load_settings(),
        lambda database: database.read(
            delivery.list_deliveries, wanted, state=shown_as, limit=limit
        ),
    )
    print_records(page.deliveries, _COLUMNS, as_json=as_json, wide=wide)


@app.command()
def show(
    delivery_id: Annotated[str, typer.Argument(metavar="ID", help="ID of the delivery.")],
    as_json: AsJson = False,
    wide: Wide = False,
) -> None:
    """Show the attempts of a delivery and the receiver's responses."""
    found = run_on_database(
        load_settings(), lambda database: database.read(delivery.load_delivery, delivery_id)
    )
    if found is None:
        raise OperatorError(f"no delivery with ID {delivery_id!r}")
    print_records(found["attempts"], _ATTEMPTS, as_json=as_json, wide=wide)


@app.command()
def replay(
    delivery_id: Annotated[
        str | None,
        typer.Argument(
            metavar="[ID]", help="ID of a delivery to resend. The delivery can be in any state."
        ),
    ] = None,
    *,
    state: Annotated[
        str | None,
        typer.Option(
            help=f"Only deliveries in this state: {', '.join(REPLAYABLE_STATES)}. "
            f"Default: {DeliveryState.DEAD}."
        ),
    ] = None,
    destination: Destination = None,
    event: Event = None,
    since: Since = None,
    until: Until = None,
    as_json: AsJson = False,
) -> None:
    """Resend one delivery, or all deliveries that match the options.

    Without an ID or options, resends all dead deliveries. Prints how many deliveries were resent.
    To stop waiting, press Ctrl+C. A running service continues the replay.
    """
    wanted = _filter(destination, event, since, until)
    if delivery_id is not None:
        if state is not None or wanted != DeliveryFilter():
            raise OperatorError("use either the ID of a delivery or filter options, not both")
        count = run_on_database(
            load_settings(), lambda database: database.write(_replay_one, delivery_id)
        )
    else:
        resting = _word(DeliveryState.parse_replayable, "--state", state or DeliveryState.DEAD)
        count = run_on_database(
            load_settings(), lambda database: _replay_all(database, resting, wanted)
        )
    print_value("replayed", count, as_json=as_json)


def _replay_one(connection: Connection, delivery_id: str) -> int:
    now = SystemClock().now()
    try:
        to = delivery.replay_delivery(connection, delivery_id, now)
    except NoSuchDeliveryError:
        raise OperatorError(f"no delivery with ID {delivery_id!r}") from None
    except NotReplayableError as error:
        raise OperatorError(f"{delivery_id} cannot be replayed: {error}") from None
    target, details = f"delivery:{delivery_id}", {"destination": to}
    record(connection, now, "delivery.replay", target=target, details=details)
    return 1


async def _replay_all(database: Database, state: DeliveryState, wanted: DeliveryFilter) -> int:
    """Return the number of deliveries that this command and a running service resent."""
    try:
        extent = await database.read(delivery.measure_replay, state, wanted)
    except NoSuchDestinationError as error:
        raise OperatorError(f"--destination: {error}") from None
    made = await database.write(_create, extent)
    found: dict[str, Any] | None = made
    while found is not None and found["state"] == delivery.ReplayState.RUNNING:
        now = SystemClock().now()
        await database.write(delivery.replay_batch, now, replay_id=made["id"])
        found = await database.read(delivery.load_replay, made["id"])
        if found is not None:
            is_over = found["state"] != delivery.ReplayState.RUNNING
            print_progress(f"{found['replayed']} of {found['total']}", end="\n" if is_over else "")
    return int(found["replayed"]) if found else 0


def _create(connection: Connection, extent: delivery.ReplayExtent) -> dict[str, Any]:
    now = SystemClock().now()
    made = delivery.create_replay(connection, extent, whoami(), now)
    details = {**made["filter"], "total": made["total"]}
    record(connection, now, "deliveries.replay", target=f"replay:{made['id']}", details=details)
    return made


@app.command()
def reroute(
    *,
    since: Annotated[
        str,
        typer.Option(
            help="Only events since this time, such as 24h (24 hours ago) or 2026-11-21T05:33:01Z."
        ),
    ],
    until: Annotated[
        str | None,
        typer.Option(
            help="Only events before this time, in the same formats as --since. Default: now."
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Print how many events would be rerouted, without rerouting them."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Reroute events that matched no destination.

    Sends each event to the destinations that match it now, and prints how many events were
    rerouted. Skips suppressed events and events that already have a delivery, so you can safely run
    the command again.
    """
    now = SystemClock().now()
    begin = parse_moment("--since", since, now)
    end = now if until is None else parse_moment("--until", until, now)
    settings = load_settings()
    if dry_run:
        count = run_on_database(
            settings,
            lambda database: database.read(delivery.count_unmatched_events, begin, end),
        )
    else:
        count = run_on_database(settings, lambda database: _reroute_all(database, begin, end))
    print_value("events", count, as_json=as_json)


async def _reroute_all(database: Database, since: datetime, until: datetime) -> int:
    rerouted = 0
    position: datetime | None = since
    while position is not None:
        batch = await database.write(_reroute, position, until)
        rerouted += batch.count
        position = batch.next_since
    return rerouted


def _reroute(connection: Connection, since: datetime, until: datetime) -> delivery.ReroutedEvents:
    batch = delivery.reroute_events(connection, since, until)
    end = batch.next_since or until
    details = {"since": isoformat(since), "until": isoformat(end), "events": batch.count}
    record(connection, SystemClock().now(), "events.reroute", details=details)
    return batch


def _filter(
    destination: str | None,
    event: str | None,
    since: str | None,
    until: str | None,
    subject: str | None = None,
) -> DeliveryFilter:
    now = SystemClock().now()
    return DeliveryFilter(
        destination=destination,
        event_type=None if event is None else _word(DeliveryType.parse, "--event", event),
        subject=subject,
        since=None if since is None else parse_moment("--since", since, now),
        until=None if until is None else parse_moment("--until", until, now),
    )


def _word(parse: Callable[[str], Word], option: str, text: str) -> Word:
    try:
        return parse(text)
    except ValueError as error:
        raise OperatorError(f"{option}: found {text!r}; {error}") from None

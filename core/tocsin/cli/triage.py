"""Commands of `tocsin incidents` that triage incidents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Annotated, Any

import typer

from tocsin.cli.options import choice_option
from tocsin.cli.output import AsJson, Columns, Wide, print_json, print_record, print_records
from tocsin.cli.responses import RefusedRequestError
from tocsin.cli.service_api import NULL, ApiKey, ApiUrl, Limit, ServiceApi, run_with_key
from tocsin.errors import OperatorError
from tocsin.model import DispositionSource, IncidentDisposition

INCIDENTS_PATH = "/api/v1/incidents"
_NUMBER = {"min": 1, "max": 10**18 - 1}
Numbers = Annotated[
    list[int], typer.Argument(metavar="NUMBER...", help="Numbers of the incidents.", **_NUMBER)
]
Number = Annotated[int, typer.Argument(metavar="NUMBER", help="Number of the incident.", **_NUMBER)]
TRIAGED = ("assignee", "acknowledged_by", "disposition", "tags")
TRIAGE_DETAILS = (
    *("acknowledged_at", "disposition_reason", "disposition_source", "disposition_by"),
    *("disposition_at", "linked_incidents", "watchers", "comment_count"),
)
_COLUMNS = Columns(("number", *TRIAGED, *TRIAGE_DETAILS), brief=("number", *TRIAGED))
_WRITE_SCOPE = "incidents:write"
_ABOUT_ONE_INCIDENT = (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT, HTTPStatus.UNPROCESSABLE_ENTITY)
_COMMENTS = Columns(("id", "created_at", "created_by", "text"))


def add_triage_columns(record: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return an incident's record with these members of its triage; None for missing ones."""
    triage = record["triage"] or {}
    return {**{name: triage.get(name) for name in names}, **record}


def add_commands(app: typer.Typer) -> None:
    """Add the commands that triage incidents."""
    for name, command in (
        ("assign", _assign),
        ("acknowledge", _acknowledge),
        ("classify", _classify),
        ("tag", _tag),
        ("link", _link),
        ("watch", _watch),
        ("comment", _comment),
        ("comments", _list_comments),
    ):
        app.command(name)(command)


def _assign(
    numbers: Numbers,
    *,
    to: Annotated[str | None, typer.Option("--to", help="Person to assign incidents to.")] = None,
    nobody: Annotated[bool, typer.Option("--nobody", help="Remove the assignee.")] = False,
    url: ApiUrl = None,
    api_key: ApiKey = None,
    as_json: AsJson = False,
    wide: Wide = False,
) -> None:
    """Assign incidents to a person, or remove their assignee.

    Requires an API key with the scope `incidents:write`.
    """
    if (to is None) != nobody:
        raise OperatorError("use either --to NAME or --nobody")
    _change(
        numbers, {"assignee": NULL if to is None else to}, url, api_key, as_json=as_json, wide=wide
    )


def _acknowledge(
    numbers: Numbers,
    *,
    undo: Annotated[bool, typer.Option("--undo", help="Remove the acknowledgement.")] = False,
    url: ApiUrl = None,
    api_key: ApiKey = None,
    as_json: AsJson = False,
    wide: Wide = False,
) -> None:
    """Acknowledge incidents, or remove their acknowledgement.

    Requires an API key with the scope `incidents:write`.
    """
    _change(numbers, {"acknowledged": not undo}, url, api_key, as_json=as_json, wide=wide)


def _classify(
    numbers: Numbers,
    *,
    disposition: Annotated[
        IncidentDisposition | None,
        choice_option(IncidentDisposition, "--as", help="New disposition."),
    ] = None,
    reason: Annotated[str | None, typer.Option(help="Reason for the disposition.")] = None,
    source: Annotated[
        DispositionSource | None,
        choice_option(
            DispositionSource, help="Who or what determined the disposition. Default: playbook."
        ),
    ] = None,
    clear: Annotated[bool, typer.Option("--clear", help="Remove the disposition.")] = False,
    url: ApiUrl = None,
    api_key: ApiKey = None,
    as_json: AsJson = False,
    wide: Wide = False,
) -> None:
    """Set or remove the disposition of incidents.

    Does not change the status of the incidents in the SIEM. Requires an API key with the scope
    `incidents:write`.
    """
    if (disposition is None) != clear:
        raise OperatorError("use either --as DISPOSITION or --clear")
    change: dict[str, object] = {"disposition": NULL if clear else disposition}
    change |= {"disposition_reason": reason, "disposition_source": source}
    _change(numbers, change, url, api_key, as_json=as_json, wide=wide)


def _tag(
    numbers: Numbers,
    *,
    add: Annotated[list[str] | None, typer.Option("--add", help="Tag to add (repeatable).")] = None,
    remove: Annotated[
        list[str] | None, typer.Option("--remove", help="Tag to remove (repeatable).")
    ] = None,
    url: ApiUrl = None,
    api_key: ApiKey = None,
    as_json: AsJson = False,
    wide: Wide = False,
) -> None:
    """Add tags to incidents and remove tags from them.

    Requires an API key with the scope `incidents:write`.
    """
    change = _build_label_change("tags", add, remove)
    _change(numbers, change, url, api_key, as_json=as_json, wide=wide)


def _link(
    numbers: Numbers,
    *,
    add: Annotated[
        list[int] | None, typer.Option("--add", help="Number of an incident to link (repeatable).")
    ] = None,
    remove: Annotated[
        list[int] | None,
        typer.Option("--remove", help="Number of an incident to unlink (repeatable)."),
    ] = None,
    url: ApiUrl = None,
    api_key: ApiKey = None,
    as_json: AsJson = False,
    wide: Wide = False,
) -> None:
    """Link incidents to other incidents, and unlink them.

    Requires an API key with the scope `incidents:write`.
    """
    change = _build_label_change("links", add, remove)
    _change(numbers, change, url, api_key, as_json=as_json, wide=wide)


def _watch(
    numbers: Numbers,
    *,
    add: Annotated[
        list[str] | None, typer.Option("--add", help="Name of a watcher to add (repeatable).")
    ] = None,
    remove: Annotated[
        list[str] | None, typer.Option("--remove", help="Name of a watcher to remove (repeatable).")
    ] = None,
    url: ApiUrl = None,
    api_key: ApiKey = None,
    as_json: AsJson = False,
    wide: Wide = False,
) -> None:
    """Add watchers to incidents and remove watchers from them.

    Requires an API key with the scope `incidents:write`.
    """
    change = _build_label_change("watchers", add, remove)
    _change(numbers, change, url, api_key, as_json=as_json, wide=wide)


def _build_label_change(
    name: str, add: Sequence[Any] | None, remove: Sequence[Any] | None
) -> dict[str, object]:
    """Return the body for these labels; raises OperatorError if there are none."""
    if not add and not remove:
        raise OperatorError("use --add, --remove or both")
    return {f"add_{name}": add or None, f"remove_{name}": remove or None}


def _change(
    numbers: Sequence[int],
    change: Mapping[str, object],
    url: str | None,
    api_key: str | None,
    *,
    as_json: bool,
    wide: bool,
) -> None:
    """Change incidents one after the other, and print the triage of the changed incidents.

    Raises OperatorError with the reasons why the others were not changed.
    """
    changed, reasons = run_with_key(
        url, api_key, lambda api: _send_changes(api, numbers, change), scope=_WRITE_SCOPE
    )
    if as_json:
        print_json(changed)
    elif changed or not reasons:
        shown = [add_triage_columns(record, _COLUMNS.every[1:]) for record in changed]
        print_records(shown, _COLUMNS, as_json=False, wide=wide)
    if reasons:
        failed = [f"{_name_incidents(each)}: {reason}" for reason, each in reasons.items()]
        summary = f"changed {len(changed)} of {len(numbers)} incidents"
        raise OperatorError("\n".join([*failed, *([summary] if len(numbers) > 1 else [])]))


async def _send_changes(
    api: ServiceApi, numbers: Sequence[int], change: Mapping[str, object]
) -> tuple[list[dict[str, Any]], dict[str, list[int]]]:
    """Return the changed incidents, and the numbers of the others by reason.

    Stops at an error that is not about one incident, such as a lost connection.
    """
    changed: list[dict[str, Any]] = []
    reasons: dict[str, list[int]] = {}
    for position, number in enumerate(numbers):
        try:
            changed.append(await api.call("PATCH", f"{INCIDENTS_PATH}/{number}", body=change))
        except OperatorError as error:
            reasons.setdefault(str(error), []).append(number)
            if not _concerns_incident(error):
                if rest := list(numbers[position + 1 :]):
                    reasons["not tried"] = rest
                break
    return changed, reasons


def _concerns_incident(error: OperatorError) -> bool:
    return isinstance(error, RefusedRequestError) and error.status in _ABOUT_ONE_INCIDENT


def _name_incidents(numbers: Sequence[int]) -> str:
    return f"incident{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"


def _comment(
    number: Number,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="Text of the comment.")],
    url: ApiUrl = None,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Add a comment to an incident.

    Requires an API key with the scope `incidents:write`.
    """
    path, body = f"{INCIDENTS_PATH}/{number}/comments", {"text": text}
    record = run_with_key(
        url,
        api_key,
        lambda api: api.call("POST", path, body=body),
        scope=_WRITE_SCOPE,
    )
    print_record(record, _COMMENTS.every, as_json=as_json)


def _list_comments(
    number: Number,
    *,
    limit: Limit = 50,
    url: ApiUrl = None,
    api_key: ApiKey = None,
    as_json: AsJson = False,
    wide: Wide = False,
) -> None:
    """List the comments on an incident, newest first.

    Requires an API key with the scope `incidents:read`.
    """
    path = f"{INCIDENTS_PATH}/{number}/comments"
    records = run_with_key(url, api_key, lambda api: api.collect(path, "comments", limit=limit))
    print_records(records, _COMMENTS, as_json=as_json, wide=wide)

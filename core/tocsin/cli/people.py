"""`tocsin people`: people who sign in to the console with passkeys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from tocsin.cli.output import AsJson, Columns, Wide, print_record, print_records
from tocsin.cli.responses import ResponseMembers, print_secret
from tocsin.cli.service_api import AdminToken, ApiUrl, Limit, admin_path, run_on_api
from tocsin.credentials import ConsoleRole

app = typer.Typer(
    no_args_is_help=True, help="Manage people who sign in to the console with passkeys."
)

_COLUMNS = Columns(
    (
        *("name", "role", "status", "passkeys", "last_used_at", "created_by", "created_at"),
        "link_expires_at",
    ),
    brief=("name", "role", "status", "passkeys", "last_used_at"),
)
_PASSKEY_COLUMNS = Columns(
    ("id", "label", "created_at", "last_used_at"),
    brief=("id", "label", "created_at", "last_used_at"),
)
PersonName = Annotated[str, typer.Argument(metavar="NAME", help="Name of the person.")]
Role = Annotated[
    ConsoleRole, typer.Option(help="Role in the console.", case_sensitive=False, show_choices=True)
]
ExpiresInHours = Annotated[
    int | None, typer.Option(help="Hours until the link expires. Maximum: 168. Default: 24.")
]


@app.command()
def create(
    *,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name in lowercase, such as ana@example.org.")
    ],
    role: Role,
    expires_in_hours: ExpiresInHours = None,
    url: ApiUrl = None,
    token: AdminToken = None,
    as_json: AsJson = False,
) -> None:
    """Create a person and print a link to add a first passkey.

    Standard output contains only the link; details go to standard error.
    """
    body = {"name": name, "role": role, "expires_in_hours": expires_in_hours}
    answer = run_on_api(url, token, lambda api: api.call("POST", admin_path("people"), body=body))
    _print_link(answer, as_json=as_json)


@app.command()
def link(
    *,
    name: PersonName,
    expires_in_hours: ExpiresInHours = None,
    url: ApiUrl = None,
    token: AdminToken = None,
    as_json: AsJson = False,
) -> None:
    """Print a link that lets a person add another passkey.

    Standard output contains only the link; details go to standard error. The person's
    earlier links stop working.
    """
    body, path = {"expires_in_hours": expires_in_hours}, admin_path("people", name, "passkey-link")
    answer = run_on_api(url, token, lambda api: api.call("POST", path, body=body))
    _print_link(answer, as_json=as_json)


@app.command("list")
def list_all(
    *,
    limit: Limit = 50,
    url: ApiUrl = None,
    token: AdminToken = None,
    as_json: AsJson = False,
    wide: Wide = False,
) -> None:
    """List people by name, with their number of passkeys."""
    records = run_on_api(
        url, token, lambda api: api.collect(admin_path("people"), "people", limit=limit)
    )
    shown = records if as_json else [_summarize(record) for record in records]
    print_records(shown, _COLUMNS, as_json=as_json, wide=wide)


@app.command()
def passkeys(
    name: PersonName, url: ApiUrl = None, token: AdminToken = None, as_json: AsJson = False
) -> None:
    """List a person's passkeys."""
    record = run_on_api(url, token, lambda api: api.call("GET", admin_path("people", name)))
    print_records(record["passkeys"], _PASSKEY_COLUMNS, as_json=as_json)


@app.command()
def change(
    name: PersonName,
    role: Role,
    url: ApiUrl = None,
    token: AdminToken = None,
    as_json: AsJson = False,
) -> None:
    """Change a person's role and end their sessions."""
    _update(name, {"role": role}, url, token, as_json=as_json)


@app.command()
def disable(
    name: PersonName, url: ApiUrl = None, token: AdminToken = None, as_json: AsJson = False
) -> None:
    """Disable a person and end their sessions.

    Also revokes the person's links. Their passkeys stay registered, but do not work until you
    enable the person again.
    """
    _update(name, {"enabled": False}, url, token, as_json=as_json)


@app.command()
def enable(
    name: PersonName, url: ApiUrl = None, token: AdminToken = None, as_json: AsJson = False
) -> None:
    """Enable a person so that their passkeys work again."""
    _update(name, {"enabled": True}, url, token, as_json=as_json)


@app.command()
def delete(
    name: PersonName, url: ApiUrl = None, token: AdminToken = None, as_json: AsJson = False
) -> None:
    """Delete a person and their passkeys.

    Also ends the person's sessions.
    """
    record = run_on_api(url, token, lambda api: api.call("DELETE", admin_path("people", name)))
    _print_person(record, as_json=as_json)


@app.command("delete-passkey")
def delete_passkey(
    name: PersonName,
    passkey_id: Annotated[str, typer.Argument(metavar="PASSKEY_ID", help="ID of the passkey.")],
    url: ApiUrl = None,
    token: AdminToken = None,
    as_json: AsJson = False,
) -> None:
    """Delete a person's passkey and end their sessions."""
    path = admin_path("people", name, "passkeys", passkey_id)
    record = run_on_api(url, token, lambda api: api.call("DELETE", path))
    _print_person(record, as_json=as_json)


def _update(
    name: str, body: Mapping[str, object], url: str | None, token: str | None, *, as_json: bool
) -> None:
    path = admin_path("people", name)
    record = run_on_api(url, token, lambda api: api.call("PATCH", path, body=body))
    _print_person(record, as_json=as_json)


def _print_link(answer: ResponseMembers, *, as_json: bool) -> None:
    remark = f"the link for {answer['name']} works once and expires at {answer['expires_at']}"
    print_secret(answer, "link", remark=remark, as_json=as_json)


def _print_person(record: Mapping[str, Any], *, as_json: bool) -> None:
    print_record(record if as_json else _summarize(record), _COLUMNS.every, as_json=as_json)


def _summarize(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a person with the number of their passkeys and the last use of any."""
    used = [passkey["last_used_at"] for passkey in record["passkeys"] if passkey["last_used_at"]]
    return {
        **record,
        "passkeys": len(record["passkeys"]),
        "last_used_at": max(used, default=None),
    }

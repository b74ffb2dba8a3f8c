"""`tocsin erase`: erase an entity, such as a person, from all stored data."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tocsin.cli.database import run_on_database, whoami
from tocsin.cli.output import AsJson, Columns, Wide, print_json, print_records
from tocsin.clock import SystemClock
from tocsin.credentials import open_proven_vault
from tocsin.erasure import Eraser, ErasureRequest, parse_entity
from tocsin.errors import InvalidInputError, OperatorError
from tocsin.model import Entity
from tocsin.registry import read_retention
from tocsin.settings import load_settings
from tocsin.store import Database

_COLUMNS = Columns(("what", "name", "detail"))


def erase(
    entity: Annotated[
        str, typer.Argument(metavar="KIND:VALUE", help="Entity to erase, such as user:j.doe.")
    ],
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Count the changes without making them.")
    ] = False,
    as_json: AsJson = False,
    wide: Wide = False,
) -> None:
    """Erase an entity from the database and the archive.

    Replaces the value with a pseudonym, both in all stored data and in data that Tocsin later reads
    from SIEMs. Prints a receipt. Ignores case. Does not change longer words that contain the value.
    Uses the database directly and requires the encryption key. You cannot undo an erasure, so start
    with `--dry-run`.
    """
    settings = load_settings()
    archive = read_retention(settings.plugins_file).archive or settings.archive_dir
    request = ErasureRequest(entity=_parse(entity), by=whoami(), address="local", dry_run=dry_run)

    async def erase_it(database: Database) -> dict[str, Any]:
        vault = await open_proven_vault(settings, database)
        eraser = Eraser(database, vault, SystemClock(), settings.data_dir, archive)
        return await eraser.erase(request)

    receipt = run_on_database(settings, erase_it)
    if as_json:
        print_json(receipt)
    else:
        print_records(_list_records(receipt), _COLUMNS, as_json=False, wide=wide)


def _parse(text: str) -> Entity:
    try:
        return parse_entity(text)
    except InvalidInputError as error:
        raise OperatorError(str(error)) from None


def _list_records(receipt: dict[str, Any]) -> list[dict[str, Any]]:
    done = "would change" if receipt["dry_run"] else "changed"
    records = [_record("pseudonym", receipt["kind"], receipt["pseudonym"])]
    records += [_record(done, name, count) for name, count in receipt["erased"].items()]
    if receipt["active_investigations"]:
        detail = (
            f"{receipt['active_investigations']} still running; when all of these investigations "
            "have ended, run the command again"
        )
        records.append(_record("pending", "investigations", detail))
    records += [_record("not changed", name, "configuration") for name in receipt["configuration"]]
    for sent in receipt["sent"]:
        named = sent["remote_url"] or sent["remote_id"] or sent["event_id"] or ""
        detail = " ".join(filter(None, (sent["outcome"], sent["subject"], sent["at"], named)))
        records.append(_record("sent to", sent["destination"], detail))
    return records


def _record(what: str, name: str, detail: object) -> dict[str, Any]:
    return {"what": what, "name": name, "detail": detail}

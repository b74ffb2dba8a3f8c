"""`tocsin db`: the database's schema."""

from __future__ import annotations

import asyncio

import typer
from sqlalchemy import URL

from tocsin.settings import load_settings
from tocsin.store import open_database, parse_url
from tocsin.store import upgrade as upgrade_schema

app = typer.Typer(no_args_is_help=True, help="The database's schema.")


@app.callback()
def _root() -> None:
    pass


@app.command()
def upgrade() -> None:
    """Bring the schema to the revision that this version works with; makes it where there is none.

    The embedded database is brought up to date whenever `tocsin serve` starts.
    """
    url = parse_url(load_settings().database)
    print(asyncio.run(_upgrade(url)))


async def _upgrade(url: URL) -> str:
    database = open_database(url)
    try:
        return await upgrade_schema(database)
    finally:
        await database.close()

"""Upstream internals that Tocsin uses, each with an upper bound in `pyproject.toml`."""

from __future__ import annotations

import asyncio
import re
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from aiohttp import ClientRequest, StreamReader, TCPConnector, http_writer
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.web_protocol import RequestHandler
from asyncpg import Connection as PostgresConnection
from jinja2.compiler import CodeGenerator, operators
from jinja2.parser import Parser
from sqlalchemy import insert
from sqlalchemy.dialects import sqlite
from yarl import URL

from tocsin.net.connector import GuardedConnector, KeptConnections
from tocsin.store.tables import deliveries

PYPROJECT = Path(__file__).parent.parent / "pyproject.toml"
INTERNALS = {
    "aiohttp": [  # tocsin.net.connector
        (TCPConnector, "_get"),
        (Connection, "close"),
        (Connection, "protocol"),
        (Connection, "release"),
        (ResponseHandler, "feed_data"),
        (ResponseHandler, "read"),
        (ResponseHandler, "set_response_params"),
        (ResponseHandler, "should_close"),
        (ResponseHandler, "set_exception"),
        (http_writer, "_serialize_headers"),
        (RequestHandler, "_parser"),  # tocsin.web.server
        (RequestHandler, "_reading_paused"),  # tocsin.web.bounded_parser
        (RequestHandler, "_waiter"),
        (StreamReader, "total_bytes"),
        (StreamReader, "total_compressed_bytes"),
    ],
    "asyncpg": [  # tocsin.store.session_limits
        (PostgresConnection, "_transport"),
    ],
    "jinja2": [  # tocsin.sandbox.code_generator
        (CodeGenerator, "blockvisit"),
        (CodeGenerator, "visit_Concat"),
        (CodeGenerator, "visit_For"),
        (CodeGenerator, "visit_Operand"),
        (CodeGenerator, "writeline"),
        (Parser, "fail"),  # tocsin.conditions.expression
        (Parser, "parse_expression"),
    ],
    "sqlalchemy": [  # tocsin.store.statements
        (insert(deliveries).compile(dialect=sqlite.dialect()), "_bind_processors"),
    ],
}


@pytest.mark.parametrize("package", INTERNALS)
def test_the_internals_are_there(package):
    missing = [(owner, name) for owner, name in INTERNALS[package] if not hasattr(owner, name)]
    assert missing == []


async def test_a_connector_makes_its_protocols_by_a_factory():
    connector = TCPConnector()
    assert isinstance(connector._factory(), ResponseHandler)
    await connector.close()


async def test_a_request_finds_its_connection_by_the_key_of_an_exchange():
    loop = asyncio.get_running_loop()
    url = URL("https://siem.example:8443/hook")
    request = ClientRequest("POST", url, loop=loop)
    kept = KeptConnections(GuardedConnector(), url, {})
    assert request.connection_key == kept.key


def test_comparisons_are_written_by_their_operators():
    assert operators["eq"] == "=="


@pytest.mark.parametrize("package", INTERNALS)
def test_their_packages_have_an_upper_bound_that_holds(package):
    project = tomllib.loads(PYPROJECT.read_text())["project"]
    [bound] = [
        found[1]
        for requirement in project["dependencies"] + project["optional-dependencies"]["postgres"]
        if re.match(rf"{package}\b", requirement)
        and (found := re.search(r"<([\d.]+)", requirement))
    ]
    limit = tuple(map(int, bound.split(".")))
    assert tuple(map(int, version(package).split(".")[: len(limit)])) < limit

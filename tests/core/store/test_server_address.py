"""Database URLs of PostgreSQL: hosts, parameters, and every problem of them at once."""

from __future__ import annotations

import asyncio
import socket
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import make_url

from postgres import PASSWORD, USER
from tocsin.errors import ConfigurationError, OperatorError
from tocsin.settings import Settings
from tocsin.store import (
    find_missing_limits,
    has_no_schema,
    identify_location,
    open_database,
    parse_url,
    parse_urls,
)
from tocsin.store.server_address import read_address

on_postgresql = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
names = st.text("abc.-09", min_size=1, max_size=9)
v6 = st.ip_addresses(v=6).map(str)
ports = st.integers(1, 65535)


@pytest.mark.parametrize(
    ("rest", "hosts"),
    [
        ("u:p@one/db", [("one", 5432)]),
        ("u:p@one:1/db", [("one", 1)]),
        ("u:p@one:1,two:2/db", [("one", 1), ("two", 2)]),
        ("u:p@one,two/db?connect_timeout=2", [("one", 5432), ("two", 5432)]),
        ("u:p@[::1]:1,two/db", [("::1", 1), ("two", 5432)]),
        ("u:p@/db?host=/run/postgresql", [("/run/postgresql", 5432)]),
        ("u:p@%2Frun%2Fpostgresql/db", [("/run/postgresql", 5432)]),
        ("u:p@/db?host=one,two&port=1,2", [("one", 1), ("two", 2)]),
        ("u:p@/db?host=one&host=two:3&port=7", [("one", 7), ("two", 3)]),
        ("u:p@/db", []),
    ],
)
def test_hosts_are_read_as_libpq_reads_them(rest, hosts):
    address = read_address(parse_url(f"postgresql://{rest}"))
    assert (list(address.hosts), address.user, address.database) == (hosts, "u", "db")


@given(st.lists(st.tuples(names | v6, ports), min_size=2, max_size=5))
def test_any_hosts_survive_the_url(hosts):
    texts = [f"[{host}]" if ":" in host else host for host, _ in hosts]
    written = ",".join(f"{text}:{port}" for text, (_, port) in zip(texts, hosts, strict=True))
    url = parse_url(f"postgresql://u:p%2C%40@{written}/db")
    assert list(read_address(url).hosts) == hosts
    assert url.password == "p,@"


@pytest.mark.parametrize(
    "password", ["1,b/c", "p,q?ss", "a,b/c", "a,b#c", "1,/%2Frun", "a:b,c", "/?#,"]
)
@pytest.mark.parametrize(
    ("host", "expected"), [("dbhost", ["dbhost"]), ("one:1,two", ["one", "two"])]
)
def test_a_password_that_is_not_escaped_is_no_host(password, host, expected):
    url = parse_url(f"postgresql://u:{password}@{host}/db")
    address = read_address(url)
    assert [name for name, _ in address.hosts] == expected
    assert (address.user, address.password, address.database) == ("u", unquote(password), "db")


@given(st.text(":/?#,[]%2Fab", max_size=12), st.sampled_from(["one", "one:1,two:2"]))
def test_credentials_are_those_of_sqlalchemy(password, hosts):
    url, plain = (f"postgresql://u:{password}@{each}/db" for each in (hosts, "one"))
    assert parse_url(url).password == make_url(plain).password


@pytest.mark.parametrize(
    "rest",
    ["p@kept@host/db", "p@kept,a@one,two/db", "p@/kept@host/db", "p@kept/a@h/d", "p@kept?a@h/db"],
)
def test_a_password_with_an_at_sign_is_refused_without_its_parts(rest):
    with pytest.raises(ConfigurationError, match="write %40 for every @") as refused:
        parse_url(f"postgresql://u:{rest}")
    assert "kept" not in str(refused.value)


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused_without_its_password(text):
    try:
        read_address(parse_url(f"postgresql://u:kept-secret@{text}"))
    except OperatorError as error:
        said = str(error)
    else:
        said = ""
    assert "kept-secret" not in said


def test_every_problem_of_a_url_is_named_at_once(tmp_path):
    query = "&".join(
        [
            "sslmoed=require",
            "sslmode=very",
            "target_session_attrs=standby",
            "connect_timeout=0",
            "statement_cache_size=many",
            f"sslrootcert={tmp_path / 'none.pem'}",
            "sslkey=/",
        ]
    )
    with pytest.raises(ConfigurationError) as refused:
        parse_url(f"postgresql://u:pass@one:x,:2/db?{query}")
    found = "\n".join(str(problem) for problem in refused.value.problems)
    for part in (
        "unknown parameter sslmoed; remove it; did you mean 'sslmode'?",
        "sslmode: found 'very'; use disable, allow, prefer, require, verify-ca or verify-full",
        "target_session_attrs: found 'standby', where nothing can be stored",
        "connect_timeout: found '0'; use seconds from 1 to 999",
        "statement_cache_size: found 'many'; use a number from 0 to 10000",
        "No such file or directory",
        "sslkey: set without its certificate; add sslcert",
        "host 1 of 2: not valid",
        "host 2 of 2: not valid",
    ):
        assert part in found, part


def test_a_certificate_that_would_not_be_used_is_a_problem(tmp_path):
    (tmp_path / "ca.pem").write_text("")
    with pytest.raises(ConfigurationError, match="add sslmode=verify-full"):
        parse_url(f"postgresql://u@h/db?sslrootcert={tmp_path / 'ca.pem'}")


def test_problems_of_all_urls_are_named_at_once():
    settings = Settings(
        database_url="postgresql://u@h/d?sslmode=x", database_session_url="mysql://u@h/d"
    )
    with pytest.raises(OperatorError, match=r"TOCSIN_DATABASE_URL[^\0]+TOCSIN_DATABASE_SESSION"):
        parse_urls(settings)


def test_sqlite_has_no_sessions(tmp_path):
    settings = Settings(data_dir=tmp_path, database_session_url="postgresql://u@h/d")
    with pytest.raises(OperatorError, match="TOCSIN_DATABASE_SESSION_URL: only PostgreSQL"):
        parse_urls(settings)


def test_a_location_has_all_hosts_and_no_credentials():
    url = parse_url("postgresql://u:p@one,two:1/db?sslmode=require")
    assert identify_location(url) == "postgresql://one:5432,two:1/db"


@on_postgresql
async def test_a_unix_socket_leads_to_the_database(postgres, migrated_url):
    place = f"{migrated_url.database}?host={postgres.home}&port={postgres.port}"
    database = open_database(parse_url(f"postgresql://{USER}:{PASSWORD}@/{place}"))
    assert await database.read(find_missing_limits) == []
    assert not await has_no_schema(database)
    await database.close()


@pytest.mark.full  # waits for a host that does not answer
@on_postgresql
async def test_a_host_that_is_down_costs_nothing_but_the_first_connection(migrated_url):
    with socket.create_server(("127.0.0.1", 0)) as silent, socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        hosts = [closed.getsockname(), silent.getsockname(), ("127.0.0.1", migrated_url.port)]
        listed = ",".join(f"{host}:{port}" for host, port in hosts)
        rest = f"{listed}/{migrated_url.database}?connect_timeout=1"
        database = open_database(parse_url(f"postgresql://{USER}:{PASSWORD}@{rest}"))
        await asyncio.gather(*(database.read(find_missing_limits) for _ in range(2)))
        silent.setblocking(False)
        first = count_waiting(silent)
        await asyncio.gather(*(database.read(find_missing_limits) for _ in range(5)))
        await database.write(find_missing_limits)
        assert (first > 0, count_waiting(silent)) == (True, 0)
        await database.close()


def count_waiting(server: socket.socket) -> int:
    """Return how many have connected to a server that answers nobody."""
    count = 0
    while True:
        try:
            server.accept()[0].close()
        except BlockingIOError:
            return count
        count += 1


async def test_hosts_that_all_fail_are_all_named():
    with socket.socket() as one, socket.socket() as two:
        for each in (one, two):
            each.bind(("127.0.0.1", 0))
        places = [f"127.0.0.1:{each.getsockname()[1]}" for each in (one, two)]
        database = open_database(parse_url(f"postgresql://u:p@{','.join(places)}/db"))
        with pytest.raises(ConnectionError, match=f"{places[0]}: .+; {places[1]}: "):
            await database._attending.connect().start()
        await database.close()

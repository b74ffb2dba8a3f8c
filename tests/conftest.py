"""Shared fixtures: both databases, and a manual clock."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import hypothesis
import pytest
import structlog
import uvloop
from sqlalchemy import URL, make_url
from sqlalchemy.exc import SQLAlchemyError

from tocsin import gc
from tocsin.delivery import record_application
from tocsin.store import Database, DatabaseFailure, open_database, upgrade
from tocsin.testing import ManualClock

sys.path.insert(0, str(Path(__file__).parent))

from ordinary_run import drop_full_cases, is_for_other_suite, mark_full
from postgres import Postgres, memory
from stored_documents import compare_documents

# How long an example takes depends on the machine and says nothing of the code
hypothesis.settings.register_profile(
    "tocsin", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.register_profile(
    "ordinary", parent=hypothesis.settings.get_profile("tocsin"), max_examples=30
)
hypothesis.settings.load_profile("tocsin")


@pytest.hookimpl(wrapper=True)
def pytest_timeout_set_timer(settings: Any) -> Generator[None, object, object]:
    """Let the time limit of a test fire again: asyncio only logs an error raised in a callback."""
    result = yield
    if settings.method == "signal":
        signal.setitimer(signal.ITIMER_REAL, settings.timeout, 10)
    return result


def pytest_configure(config: pytest.Config) -> None:
    """Keep files in memory, and look at fewer examples where the large sizes are left out."""
    if folder := memory():
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", folder)
    gc.tune()
    if _is_ordinary(config):
        hypothesis.settings.load_profile("ordinary")


if os.environ.get("TOCSIN_EVENT_LOOP") == "uvloop":

    def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
        """Run the tests on the event loop that the services of the tests use."""
        return {"uvloop": uvloop.new_event_loop}


def _is_ordinary(config: pytest.Config) -> bool:
    return bool(config.option.markexpr == "not full")


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(
    collector: pytest.Module | pytest.Class, name: str, obj: object
) -> list[pytest.Item] | None:
    """Collect no rule that an ordinary run leaves to other suites."""
    nodeid = f"{collector.nodeid}::{name}"
    return [] if _is_ordinary(collector.config) and is_for_other_suite(nodeid, obj) else None


@pytest.hookimpl(trylast=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if _is_ordinary(metafunc.config):
        drop_full_cases(metafunc)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mark_full(items)


def pytest_collection_finish() -> None:
    """Leave thousands of tests alone: going through them took as long as a template may."""
    gc.tune()


# Tracebacks as they are: drawing them in frames took a tenth of the time that the tests take
structlog.configure(
    wrapper_class=structlog.make_filtering_bound_logger("info"),
    processors=[
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.dev.set_exc_info,
        structlog.dev.ConsoleRenderer(
            colors=False, exception_formatter=structlog.dev.plain_traceback
        ),
    ],
)


def migrate(url: URL) -> None:
    """Give the database the newest schema, as after `tocsin apply`, so that events are routed."""

    async def upgrade_it() -> None:
        database = open_database(url)
        await upgrade(database)
        await database.write(record_application)
        await database.close()

    asyncio.run(upgrade_it())


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    # not below pytest's own folder, which it keeps for one user alone
    with TemporaryDirectory(prefix="tocsin-postgres-") as folder, Postgres(Path(folder)) as server:
        yield server


@pytest.fixture(scope="session")
def migrated(postgres: Postgres) -> str:
    """The name of a database with the newest schema, to make copies of."""
    migrate(make_url(postgres.create("migrated")))
    return "migrated"


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file with the newest schema, to make copies of."""
    path = tmp_path_factory.mktemp("migrated") / "tocsin.db"
    migrate(URL.create("sqlite", database=str(path)))
    return path


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[URL]:
    """A database of the test's own, of either kind; PostgreSQL's has the newest schema.

    On PostgreSQL, tests take turns in one database, which each gets as migrations have left it.
    """
    if request.param == "sqlite":
        yield URL.create("sqlite", database=str(tmp_path / "tocsin.db"))
        return
    server: Postgres = request.getfixturevalue("postgres")
    yield make_url(server.lend(request.getfixturevalue("migrated")))
    server.take_back()


@pytest.fixture
def migrated_url(database_url: URL, request: pytest.FixtureRequest) -> URL:
    """A database with the newest schema."""
    if database_url.get_backend_name() == "sqlite":
        shutil.copy(request.getfixturevalue("migrated_file"), str(database_url.database))
    return database_url


@pytest.fixture
async def database(migrated_url: URL) -> AsyncIterator[Database]:
    """An open database with the newest schema; the test runs on both kinds."""
    database = open_database(migrated_url)
    yield database
    # unless the test has broken or closed it
    with suppress(SQLAlchemyError, DatabaseFailure, RuntimeError, TimeoutError):
        async with asyncio.timeout(5):
            await database.read(compare_documents)
    await database.close()

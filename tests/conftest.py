"""Shared fixtures: both databases, and a manual clock."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from zlib import crc32

import hypothesis
import pytest
import structlog
from sqlalchemy import URL, make_url

from tocsin import gc
from tocsin.delivery import record_application
from tocsin.store import Database, open_database, upgrade
from tocsin.testing import ManualClock

sys.path.insert(0, str(Path(__file__).parent))

from postgres import Postgres, memory

# How long an example takes depends on the machine and says nothing of the code
hypothesis.settings.register_profile(
    "tocsin", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.register_profile(
    "ordinary", parent=hypothesis.settings.get_profile("tocsin"), max_examples=30
)
hypothesis.settings.load_profile("tocsin")


def pytest_configure(config: pytest.Config) -> None:
    """Keep files in memory, and look at fewer examples where the large sizes are left out."""
    if folder := memory():
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", folder)
    gc.tune()
    if config.option.markexpr == "not full":
        hypothesis.settings.load_profile("ordinary")


_ON_ONE_DATABASE = tuple(
    f"tests/core/{folder}/" for folder in ("accounting", "audit", "cli", "credentials", "web")
)
"""Where ordinary runs take each test on one of both databases, half of them on either.

What differs between the two lies below, in folders whose tests always run on both.
"""
_AT_ANY_STEP = {
    "test_a_failure_at_any_step_changes_no_result",
    "test_a_lost_response_at_any_step_changes_no_result",
    "test_refused_credentials_raise_at_every_step",
}
"""Rules that try out every request of a channel; ordinary runs do so with a few channels."""
_TRIED_AT_ANY_STEP = {"TestGitHub", "TestZendesk", "TestTheHive"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as `full` what ordinary runs leave out by rules rather than one by one."""
    for item in items:
        if _is_done_elsewhere(item) or _is_done_with_others(item):
            item.add_marker(pytest.mark.full)


def pytest_collection_finish() -> None:
    """Leave thousands of tests alone: going through them took as long as a template may."""
    gc.tune()


def _is_done_with_others(item: pytest.Item) -> bool:
    """Return whether other channels are tried out by this rule."""
    suite = getattr(item, "cls", None)
    return (
        item.name in _AT_ANY_STEP and suite is not None and suite.__name__ not in _TRIED_AT_ANY_STEP
    )


def _is_done_elsewhere(item: pytest.Item) -> bool:
    """Return whether ordinary runs take the test on the other database."""
    name, _, parameters = item.nodeid.partition("[")
    if not name.startswith(_ON_ONE_DATABASE):
        return False
    kinds = {"sqlite", "postgresql"} & set(parameters.rstrip("]").split("-"))
    return kinds == {("sqlite", "postgresql")[crc32(name.encode()) % 2]} and _runs_on_both(item)


def _runs_on_both(item: pytest.Item) -> bool:
    """Return whether nothing at the test itself says on which database it runs."""
    marks = item.iter_markers("parametrize")
    return not any("database_url" in str(mark.args[0]) for mark in marks)


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
    await database.close()

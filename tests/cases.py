"""Tables of cases that one test goes through."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from traceback import format_exception

import pytest


@contextmanager
def try_cases() -> Iterator[Callable[[object], AbstractContextManager[None]]]:
    """Return what each case is tried in; in the end, every case that has failed is named."""
    failures: list[str] = []

    @contextmanager
    def case(name: object) -> Iterator[None]:
        try:
            yield
        except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - all are shown below
            failures.append(f"case {name}\n{''.join(format_exception(error))}")

    yield case
    if failures:
        failures.append(f"{len(failures)} cases have failed")
        pytest.fail("\n".join(failures), pytrace=False)

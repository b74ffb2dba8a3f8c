"""`tocsin erase`, as an operator runs it."""

from __future__ import annotations

import json

import pytest

from delivery_rows import add_delivery, add_destination, add_event
from incident_rows import add_incidents


@pytest.fixture
def named(on_database, tmp_path):
    """An incident of j.doe that was sent to a destination."""

    def add(connection) -> None:
        [number] = add_incidents(connection, title="j.doe", entities=[("user", "j.doe")])
        add_destination(connection)
        add_delivery(connection, "delivered", event=add_event(connection, number=number))

    on_database(add)
    (tmp_path / "plugins.toml").touch()


def test_what_would_change_is_counted_and_then_changed(tocsin, named):
    status, out, _ = tocsin("erase", "user:J.Doe", "--dry-run")
    assert status == 0
    assert "would change\tincidents\t1" in out.splitlines()
    status, out, _ = tocsin("erase", "user:J.Doe", "--json")
    receipt = json.loads(out)
    assert (status, receipt["erased"]["incident_entities"]) == (0, 1)
    assert receipt["pseudonym"].startswith("erased-")
    assert receipt["pseudonym"] in tocsin("trace", "1")[1]
    assert tocsin("erase", "user:j.doe")[1] == f"pseudonym\tuser\t{receipt['pseudonym']}\n"
    assert tocsin("audit", "verify")[0] == 0


@pytest.mark.parametrize("entity", ["j.doe", "person:j.doe", "user:", "user:jd"])
def test_what_cannot_be_erased_is_said(tocsin, named, entity):
    status, _, errors = tocsin("erase", entity)
    assert status == 2
    assert f"Found {entity!r}; use KIND:VALUE" in errors

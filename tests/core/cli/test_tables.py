"""Tables on a terminal: what they leave out, and that they fit."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import pytest
from rich.cells import cell_len

import tocsin.cli
from tocsin.cli.marks import Mark
from tocsin.cli.output import Columns, print_marked, print_record, print_records, print_tree

ID = "ses_01KAXV5C9W3J6Q8R1T2Y4Z7M0N"
SENTENCE = "the receiver 受信 returned 503, and wants nothing more of this kind for a while; " * 4
MOMENT = "2026-11-21T05:33:01.123Z"
LONG = {
    **dict.fromkeys(("state", "status", "outcome", "last_status"), "credentials-refused"),
    **dict.fromkeys(("attempts", "pages", "records", "new", "changed"), 12_345_678),
    **dict.fromkeys(("progress", "score", "risk_score"), 0.123456789),
    **dict.fromkeys(("reason", "detail", "title", "snippet", "error", "content"), SENTENCE),
    **dict.fromkeys(("id", "session_id", "schedule_id", "client_id"), ID),
}


@cache
def list_columns() -> dict[str, Columns]:
    """Return the columns of all commands."""
    found = {}
    for module in iter_modules(tocsin.cli.__path__, "tocsin.cli."):
        for name, value in vars(import_module(module.name)).items():
            if isinstance(value, Columns):
                found[f"{module.name.removeprefix('tocsin.cli.')}.{name}"] = value
    return found


def make_record(columns: Columns) -> dict[str, Any]:
    """Return a record whose values are as long as they can be."""
    return {
        name: MOMENT
        if name.endswith(("_at", "_until", "_seen")) or name in {"at", "from", "to"}
        else LONG.get(name, "a-name-that-an-operator-gave-" * 3)
        for name in columns.every
    }


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _variables(monkeypatch) -> None:
    """The variables of a terminal of 80 columns without colors."""
    for name, value in {"COLUMNS": "80", "TERM": "xterm", "NO_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)


def show(function: Callable[..., None], *arguments: Any, **options: Any) -> list[str]:
    """Return the lines that a function prints on a terminal."""
    with redirect_stdout(Terminal()) as out:
        function(*arguments, **options)
    return out.getvalue().splitlines()


def list_missing(record: dict[str, Any], lines: list[str]) -> list[str]:
    """Return the members whose values are not complete in these lines."""
    text = "".join("".join(lines).split())
    return [name for name, value in record.items() if "".join(str(value).split()) not in text]


def test_tables_of_long_values_fit_a_terminal_with_all_their_columns():
    found = {}
    for name, columns in list_columns().items():
        heading, *rows = show(print_records, [make_record(columns)] * 2, columns, as_json=False)
        width = max(map(cell_len, [heading, *rows]))
        shown = len(re.split(r"  +", heading.strip()))
        if width > 80 or shown != len(columns.brief or columns.every):
            found[name] = (width, heading)
    assert found == {}
    assert len(list_columns()) > 20


def test_a_wide_table_shows_every_column_and_complete_values():
    for name, columns in list_columns().items():
        record = make_record(columns)
        heading, row = show(print_records, [record], columns, as_json=False, wide=True)
        assert [each for each in columns.every if each.replace("_", " ") not in heading] == [], name
        assert list_missing(record, [row]) == [], name


def test_a_single_record_is_wrapped_and_complete():
    for name, columns in list_columns().items():
        record = make_record(columns)
        lines = show(print_record, record, columns.every, as_json=False)
        assert max(map(cell_len, lines)) <= 80
        assert list_missing(record, lines) == [], name


def test_a_tree_is_indented_and_wrapped():
    columns = Columns(("what", "outcome", "at", "detail"))
    record = {"what": "delivery", "outcome": "dead", "at": MOMENT, "detail": SENTENCE}
    lines = show(print_tree, [(0, record), (3, record)], columns)
    assert max(map(cell_len, lines)) <= 80
    assert lines[0].startswith("delivery  ✗ dead  11-21 05:33  the receiver")
    assert [line for line in lines if line.startswith("      delivery")]
    assert "2026-11-21T05:33:01.123Z" in show(print_tree, [(0, record)], columns, wide=True)[0]


BRIEF = Columns(("id", "name", "state", "count", "failed_at", "reason"))


def test_a_table_is_short():
    given = [
        {"name": "soar-" * 9, "state": "delivered", "count": 7, "reason": None},
        {"name": "mail", "state": "dead", "count": None, "reason": "503 service unavailable"},
        {"name": "chat", "state": "pending", "count": 1234, "reason": None},
    ]
    records = [{"id": ID, "failed_at": None, **record} for record in given]
    records[1]["failed_at"] = MOMENT
    assert show(print_records, records, BRIEF, as_json=False) == [
        "id                      name        state        count  failed at    reason",
        "ses_01KAXV5…1T2Y4Z7M0N  soar-…oar-  ✓ delivered      7",
        "ses_01KAXV5…1T2Y4Z7M0N  mail        ✗ dead              11-21 05:33  503 service",
        "                                                                     unavailable",
        "ses_01KAXV5…1T2Y4Z7M0N  chat          pending     1234",
    ]


def test_columns_without_values_are_left_out():
    record = dict.fromkeys(BRIEF.every) | {"id": ID, "state": "active"}
    heading, row = show(print_records, [record], BRIEF, as_json=False)
    assert (heading.split(), row.split()) == (["id", "state"], [ID, "✓", "active"])


def test_a_narrow_terminal_gets_fewer_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    lines = show(print_records, [make_record(BRIEF)], BRIEF, as_json=False)
    assert max(map(cell_len, lines)) <= 40
    assert lines[0].split() == ["id", "name", "state"]


@pytest.mark.parametrize(
    ("variables", "colored"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)],
)
def test_colors_can_be_turned_off_and_marks_stay(monkeypatch, variables, colored):
    monkeypatch.delenv("NO_COLOR")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    record = dict.fromkeys(BRIEF.every) | {"id": ID, "state": "dead"}
    text = "".join(
        (
            *show(print_records, [record], BRIEF, as_json=False),
            *show(print_record, record, BRIEF.every, as_json=False),
            *show(print_tree, [(0, record)], BRIEF),
            *show(print_marked, Mark.BAD, "it fails"),
        )
    )
    assert text.count("✗ dead") == 3
    assert ("✗ it fails" in text, text.count("\x1b[31m")) == (True, 4 if colored else 0)


def test_elsewhere_there_are_lines_without_marks_and_colors(capsys):
    record = dict.fromkeys(BRIEF.every) | {"id": ID, "state": "dead", "failed_at": MOMENT}
    print_records([record], BRIEF, as_json=False)
    print_tree([(2, record)], BRIEF)
    print_marked(Mark.BAD, "it fails")
    line = f"{ID}\t\tdead\t\t{MOMENT}\t"
    assert capsys.readouterr().out.splitlines() == [line, line, "it fails"]

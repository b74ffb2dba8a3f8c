"""Text of attackers in the output of commands: none of it controls or misleads a terminal."""

from __future__ import annotations

import ast
import io
import json
import re
import sys
import unicodedata
from pathlib import Path
from types import SimpleNamespace

import orjson
import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Connection, insert

import tocsin.cli
from delivery_rows import add_delivery, add_destination
from incident_rows import NOW, add_incidents
from session_rows import add_session
from tocsin.cli import check
from tocsin.cli.check_report import CheckReport
from tocsin.cli.output import Columns, print_records
from tocsin.cli.responses import read_response
from tocsin.errors import OperatorError
from tocsin.hookspecs import HttpResponse
from tocsin.investigations.sessions.repository import index_session
from tocsin.knowledge.search.indexer import index_batch
from tocsin.logs import configure_logs
from tocsin.model import Health
from tocsin.store.tables import quarantine
from tocsin.terminal import neutralize

ATTACKS = {
    "clear the screen": "\x1b[2J",
    "set the title": "\x1b]0;owned\x07",
    "write to the clipboard": "\x1b]52;c;cm0gLXJmIH4K\x1b\\",
    "C1 control": "\x9b31m",
    "carriage return": "\rseverity: Low",
    "backspaces": "\b\b\b\b",
    "override": "\u202egpj.exe",
    "isolate": "\u2066\u2069",
    "line separator": "\u2028",
    "invisible": "\u200b\ufeff",
    "tags": "\U000e0041",
    "a link": "\x1b]8;;https://evil.example\x1b\\here\x1b]8;;\x1b\\",
    "a link by C1": "\x9d8;;https://evil.example\x9chere",
    "fillers": "\u3164\uffa0\u115f",
    "variations": "\U000e0100\u180b",
    "hidden hyphens": "\xad\u034f",
}
FORGED = "forged row\tof another record"
HOSTILE = "beacon " + "".join(ATTACKS.values()) + f" end\n{FORGED}\r\n{FORGED}"
COMMANDS = [
    ("search", "beacon"),
    ("search", "beacon", "--entities"),
    ("quarantine",),
    ("providers",),
    ("coverage",),
    ("trace", "1"),
    ("prove", "--since", "2026-11-20T00:00:00Z", "--until", "2026-11-22T00:00:00Z"),
    ("deliveries", "list"),
    ("investigations", "list"),
]


IGNORABLE = re.compile(  # Default_Ignorable_Code_Point of Unicode 16.0 (DerivedCoreProperties.txt)
    "[\u00ad\u034f\u061c\u115f-\u1160\u17b4-\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)
NEEDED = re.compile("[\u200c\u200d\ufe00-\ufe0f]")  # by scripts and emoji


def is_harmful(character: str) -> bool:
    """Return whether a character is a control, a bidirectional one, or shown as nothing."""
    if character in "\t\n" or NEEDED.match(character):
        return False
    kind = unicodedata.category(character)
    return kind in {"Cc", "Cf", "Cs", "Zl", "Zp"} or IGNORABLE.match(character) is not None


def harmful(text: str) -> list[str]:
    return sorted({f"U+{ord(character):04X}" for character in text if is_harmful(character)})


def quarantine_record(connection: Connection) -> None:
    row = {"provider": "sensors", "stream": "s", "source": HOSTILE, "location": HOSTILE}
    row |= {"reason": HOSTILE, "content": HOSTILE.encode(), "created_at": NOW}
    connection.execute(insert(quarantine).values(row))


@pytest.fixture
def hostile(on_database) -> str:
    """A database whose text is an attacker's; returns the id of a session."""
    on_database(add_incidents, title=HOSTILE, description=HOSTILE, entities=[("user", HOSTILE)])
    on_database(quarantine_record)
    on_database(add_destination)
    on_database(add_delivery, reason=HOSTILE)
    session_id = on_database(add_session, query=HOSTILE, title=HOSTILE)
    on_database(index_batch)
    on_database(index_session, session_id)
    return session_id


@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda arguments: " ".join(arguments[:2]))
def test_a_pipe_gets_no_controls(tocsin, hostile, arguments):
    _, out, errors = tocsin(*arguments)
    assert "Traceback" not in errors
    assert harmful(out + errors) == []
    assert not [line for line in out.splitlines() if line.startswith("forged")]


@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda arguments: " ".join(arguments[:2]))
def test_json_gets_no_controls_and_means_the_same(tocsin, hostile, arguments):
    _, out, errors = tocsin(*arguments, "--json")
    assert harmful(out + errors) == []
    if arguments[:2] == ("search", "beacon") and len(arguments) == 2:
        assert HOSTILE in {hit["title"] for hit in json.loads(out)}


@pytest.mark.parametrize("form", ["", "--json"])
def test_the_steps_of_an_investigation_get_no_controls(tocsin, hostile, form):
    status, out, _ = tocsin("investigations", "steps", hostile, *filter(None, [form]))
    assert (status, harmful(out)) == (0, [])
    assert form or not [line for line in out.splitlines() if line.startswith("forged")]


@pytest.mark.parametrize("form", ["markdown", "html", "json"])
def test_reports_get_no_controls(tocsin, hostile, form):
    status, out, _ = tocsin("investigations", "report", hostile, "--format", form)
    assert (status, harmful(out)) == (0, [])


class Terminal(io.StringIO):
    """Standard output that is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda arguments: " ".join(arguments[:2]))
def test_a_terminal_gets_no_controls(tmp_path, hostile, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr(sys, "argv", ["tocsin", *arguments])
    monkeypatch.setattr(sys, "stdout", out := Terminal())
    monkeypatch.setattr(sys, "stderr", errors := Terminal())
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    with pytest.raises(SystemExit):
        tocsin_main()
    text = out.getvalue() + errors.getvalue()
    assert harmful(text) == []
    assert "Traceback" not in text
    assert FORGED not in text


def test_a_table_shows_text_as_it_is(monkeypatch):
    monkeypatch.setattr(sys, "stdout", out := Terminal())
    text = ":skull: [red]x[/red] [link=https://evil.example]here[/link] \\"
    records = [{"number": 1, "title": text}, {"number": 2, "title": "y"}]
    print_records(records, Columns(("number", "title")), as_json=False)
    assert text in " ".join(out.getvalue().split())


async def test_a_health_check_prints_one_line_for_each_problem(tmp_path, capsys):
    class Siem:
        tools = SimpleNamespace(name="siem")

        def __init__(self, *problems: str) -> None:
            self.health = Health(detail=HOSTILE, problems=problems)

        async def check(self) -> Health:
            return self.health

    report = CheckReport(tmp_path / "plugins.toml")
    await check._check_plugin("providers", Siem(), report)
    await check._check_plugin("providers", Siem(HOSTILE, HOSTILE), report)
    captured = capsys.readouterr()
    lines = captured.out.splitlines() + captured.err.splitlines()
    assert len(lines) == 3
    assert harmful("".join(lines)) == []


def test_a_refusal_prints_one_line_for_each_mistake():
    mistakes = [{"path": HOSTILE, "detail": HOSTILE}]
    body = orjson.dumps({"detail": HOSTILE, "errors": mistakes})
    with pytest.raises(OperatorError) as caught:
        read_response(HttpResponse(status=422, headers={}, body=body, truncated=False))
    assert len(str(caught.value).split("\n")) == 2


def tocsin_main() -> None:
    tocsin.cli.main()


@pytest.mark.parametrize("form", ["console", "json"])
def test_the_log_gets_no_controls(monkeypatch, form):
    monkeypatch.setattr(sys, "stderr", errors := io.StringIO())
    before = structlog.get_config()
    try:
        configure_logs(form)
        log = structlog.get_logger()
        # without a space, which makes the renderer write it as it is
        log.warning("records quarantined", reason=HOSTILE.replace(" ", ""), content=[HOSTILE])
        log.error("failed", exc_info=ValueError(HOSTILE))
    finally:
        structlog.configure(**before)
    assert "records quarantined" in errors.getvalue()
    assert harmful(errors.getvalue()) == []


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_each_attack_is_written_out(attack):
    assert harmful(neutralize(attack)) == []
    assert neutralize(attack) != attack


def test_every_harmful_character_of_unicode_is_written_out():
    every = "".join(map(chr, range(sys.maxunicode + 1)))
    left = {character for character in neutralize(every) if is_harmful(character)}
    # marks of scripts, of numbers and of music, which move nothing
    assert {unicodedata.category(character) for character in left} == {"Cf"}
    assert {unicodedata.bidirectional(character) for character in left} <= {"AL", "AN", "BN", "L"}
    names = {unicodedata.name(character) for character in left}
    assert not [name for name in names if "LEFT-TO" in name or "RIGHT-TO" in name]


@given(st.recursive(st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_a_document_keeps_its_meaning(value):
    try:
        document = orjson.dumps(value).decode()
    except orjson.JSONEncodeError:  # a surrogate
        document = json.dumps(value, ensure_ascii=False)
    assert json.loads(neutralize(document)) == value


@pytest.mark.parametrize(
    "text", ["Zwölf Büro-Rechner", "Иван", "日本語", "👩‍💻", "می‌خواهم", "a\tb\nc"]
)
def test_other_text_stays(text):
    assert neutralize(text) == text


def test_commands_print_through_one_function_alone():
    found = [
        f"{path.name}:{ast.unparse(node.func)}"
        for path in Path(tocsin.cli.__path__[0]).glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in WRITERS
    ]
    assert sorted(found) == ["output.py:print"] * 4


WRITERS = {"print", "typer.echo", "typer.secho", "Console", "sys.stdout.write", "sys.stderr.write"}

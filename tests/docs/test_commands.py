"""Every command that a page, a message or the console quotes is one that the command line takes."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
import typer

from tocsin.cli import app
from tocsin.model import EventType

ROOT = Path(__file__).parents[2]
_INLINE = re.compile(r"(?:`|<code>)(?:\$ )?tocsin( [^`<]*)(?:`|</code>)")
_FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
_SCRIPTS = {"sh", "bash", "console", "text", ""}
# At the start of a line or of a substitution, or behind a pipe, a variable or `sudo`
_CALL = re.compile(
    r"(?:^|[(|;&] *)(?:\$ )?(?:[A-Z_]+=\S* )*(?:sudo (?:-u \S+ )?)?[\w./-]*\btocsin( [^\n]*)",
    re.MULTILINE,
)
_BY_PATH = re.compile(r"[\w}]/tocsin( [a-z][^\n]*)")
# What stands for a value: `{{ name }}`, `{name}`, `<name>`, `${name}` and words in capitals
_VALUE = re.compile(r"\{\{.*?\}\}|\$?\{[^}]*\}|<[^>]*>|\b[A-Z][A-Z_]+\b")
_ENDS = frozenset("|&;()<>")
_COMMAND = typer.main.get_command(app)
_UsageError = typer.BadParameter.__base__


class Quoted(NamedTuple):
    """A command where it is quoted."""

    place: str
    arguments: str
    is_run: bool
    """Whether a reader copies it, so that it is complete; a sentence may only name a command."""


def list_files() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    return [ROOT / name for name in listed if not name.startswith(("tests/", "docs/decisions/"))]


def read_strings(path: Path) -> Iterator[str]:
    """Yield the strings of a module; what is put into them is `{}`."""
    if not re.search(r"(?<!from )tocsin ", path.read_text(encoding="utf-8")):
        return
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.JoinedStr):
            parts = (part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
            yield "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def quoted_in(path: Path) -> Iterator[Quoted]:
    place = str(path.relative_to(ROOT))
    if path.suffix == ".py":
        for text in read_strings(path):
            yield from (Quoted(place, found, False) for found in _INLINE.findall(text))
            yield from (Quoted(place, found, True) for found in _BY_PATH.findall(text))
        return
    text = path.read_text(encoding="utf-8").replace("\\\n", " ")
    yield from (Quoted(place, found, False) for found in _INLINE.findall(_FENCE.sub("", text)))
    fences = [script for language, script in _FENCE.findall(text) if language in _SCRIPTS]
    for script in [text] if path.name == "Makefile" else fences:
        yield from (Quoted(place, found, True) for found in _CALL.findall(script))


@cache
def list_quoted() -> tuple[Quoted, ...]:
    texts = {".py", ".md", ".j2", ".toml", ".tmpl"}
    files = [path for path in list_files() if path.suffix in texts or path.name == "Makefile"]
    return tuple(sorted({found for path in files for found in quoted_in(path)}))


def split(arguments: str) -> list[str]:
    """Return the arguments up to a pipe, a redirection, a comment or the end of the command."""
    named = arguments.replace("EVENT", EventType.INCIDENT_ALERT)
    lexer = shlex.shlex(_VALUE.sub("1", named), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    found = []
    while (word := lexer.get_token()) is not None and not _ENDS.issuperset(word):
        found.append(word)
    return found


def find_refusal(quoted: Quoted) -> str | None:
    """Return why the command line refuses a command, None if it takes it."""
    command, arguments = _COMMAND, split(quoted.arguments)
    if arguments in (["--help"], ["--version"]) or _VALUE.fullmatch(quoted.arguments.strip()):
        return None
    while hasattr(command, "commands"):
        if command.invoke_without_command and (not arguments or arguments[0].startswith("-")):
            break
        if not arguments:
            return "a command is missing" if quoted.is_run else None
        name, *arguments = arguments
        if name not in command.commands:
            return f"no such command: {name}"
        command = command.commands[name]
    if not arguments and not quoted.is_run:
        return None
    try:
        command.make_context(command.name, arguments)
    except _UsageError as error:
        return error.format_message()
    return None


def test_each_quoted_command_is_taken():
    refusals = ((quoted, find_refusal(quoted)) for quoted in list_quoted())
    assert [(quoted, why) for quoted, why in refusals if why] == []


@pytest.mark.parametrize(
    ("kind", "least"), [(".j2", 4), (".md", 150), (".py", 50), (".tmpl", 2), (".toml", 1)]
)
def test_commands_are_found_wherever_they_are_quoted(kind, least):
    assert len([quoted for quoted in list_quoted() if quoted.place.endswith(kind)]) >= least


@pytest.mark.parametrize(
    "arguments",
    ["quarantine list", "keys rotate", "prove --until 1h", "search x --limit many", "keys"],
)
def test_what_the_command_line_refuses_is_found(arguments):
    assert find_refusal(Quoted("a page", arguments, True))


def test_no_command_is_quoted_without_being_marked_as_code():
    names = "|".join(_COMMAND.commands)
    bare = re.compile(rf"(?<![`/>\w=.,-])(?<!\$ )tocsin (?:{names})\b(?! [|=])")
    found = []
    for path in list_files():
        if path.suffix == ".py":
            texts = [text for text in read_strings(path) if "/tocsin" not in text]
        elif path.suffix in {".j2", ".toml"}:
            texts = [path.read_text(encoding="utf-8")]
        else:
            continue
        found += [
            f"{path.relative_to(ROOT)}: {text[:80]}"
            for text in texts
            if bare.search(text) and not bare.fullmatch(text)
        ]
    assert found == []

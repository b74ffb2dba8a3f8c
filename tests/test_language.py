"""Names of modules, classes and loop variables, and docstrings of modules."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MODULES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for folder in ("core", "plugins", "connectors", "templates")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if "migrations" not in path.parts
}
NOUNS = {
    "accounting", "billing", "caching", "drawing", "encoding", "finding", "hashing",
    "heading", "hunting", "indexing", "listing", "logging", "mapping", "marking", "paging",
    "parsing", "polling", "pricing", "ranking", "rendering", "routing", "scheduling",
    "scoring", "setting", "sharding", "sighting", "signing", "string", "testing",
    "throttling", "ticketing", "timing", "tracing", "warning",
}  # fmt: skip
"""Words in -ing that name a thing of the field."""
QUESTION = re.compile(r'r?"""\s*((?:What|Which|Where|Whom?|Whose|How|Whether|When)\b.*)')
CLASS = re.compile(r"^ *class (\w+)", re.MULTILINE)
SHARED_CLASSES = {"Settings", "Config"}
"""Nested classes that every plugin names alike."""
LOOP_OVER_IT = re.compile(r"\bfor\b[^\n:]*\bit\b[^\n]*\bin\b")
MAX_LINES = 400
LONG_MODULES = {"core/tocsin/store/tables.py"}
MAX_SAME_NAME = 2
SHORTEST_GERUND = 6


def find_gerunds() -> Iterator[str]:
    for name in MODULES:
        stem = Path(name).stem
        for word in {stem, stem.rpartition("_")[2]}:
            if word.endswith("ing") and len(word) >= SHORTEST_GERUND and word not in NOUNS:
                yield name


def find_questions() -> Iterator[str]:
    for name, text in MODULES.items():
        if match := QUESTION.match(text):
            yield f"{name}: {match[1]}"


def find_repeated_classes() -> Iterator[str]:
    places = defaultdict(list)
    for name, text in MODULES.items():
        for class_name in set(CLASS.findall(text)):
            places[class_name].append(name)
    for class_name, names in places.items():
        if len(names) > MAX_SAME_NAME and class_name not in SHARED_CLASSES:
            yield f"{class_name}: {', '.join(names)}"


def find_loops_over_it() -> Iterator[str]:
    for name, text in MODULES.items():
        if not LOOP_OVER_IT.search(text):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
                for part in ast.walk(node.target):
                    if isinstance(part, ast.Name) and part.id == "it":
                        yield f"{name}:{part.lineno}"


def find_long_modules() -> Iterator[str]:
    for name, text in MODULES.items():
        if text.count("\n") > MAX_LINES and name not in LONG_MODULES:
            yield f"{name}: {text.count(chr(10))} lines"


@pytest.mark.parametrize(
    ("find", "advice"),
    [
        (find_gerunds, "name a module by a noun: the thing in it, or its role"),
        (find_questions, "start a module docstring with a noun phrase"),
        (find_repeated_classes, "give each class its own name"),
        (find_loops_over_it, "name a loop variable after what it holds"),
        (find_long_modules, f"split modules of more than {MAX_LINES} lines"),
    ],
    ids=["gerunds", "questions", "classes", "loops", "lengths"],
)
def test_code_follows_the_language_rules(find, advice):
    assert not list(find()), advice

"""Pages for plugin authors: samples and generated pages."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from datetime import timedelta
from pathlib import Path

import pytest

from author_pages import PAGES as GENERATED
from author_reference import MODULES
from author_rules import SUITES, in_one_line
from tocsin import Capability, WindowedProvider
from tocsin.cli.scaffold import Scaffold
from tocsin.providers.cursor import MAX_SEEN
from tocsin.providers.window_reader import MAX_PAGES

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "plugin-authors"
PAGES = {path.name: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.md"))}
each_page = pytest.mark.parametrize("name", PAGES)


@pytest.mark.parametrize("name", GENERATED)
def test_a_page_that_is_made_of_docstrings_is_current(name):
    assert PAGES[name] == GENERATED[name](), "run `python -m tests.author_pages`"


def test_the_page_of_rules_has_every_rule_of_every_suite():
    rows = re.findall(r"^\| (?!Rule \|)(.+?) \| .+ \|$", PAGES["rules.md"], re.MULTILINE)
    rules = {
        getattr(suite, name): in_one_line(getattr(suite, name).__doc__.partition("\n\n")[0])
        for suite in SUITES
        for name in dir(suite)
        if name.startswith("test_")
    }
    assert sorted(rows) == sorted(rules.values())


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_the_reference_has_every_name_that_may_be_imported(module):
    headings = re.findall(r"^### `(?:async )?@?(\w+)", PAGES["reference.md"], re.MULTILINE)
    assert set(module.__all__) <= set(headings)


def test_every_page_is_named_in_the_first():
    assert set(re.findall(r"\(([a-z-]+\.md)\)", PAGES["README.md"])) == PAGES.keys() - {"README.md"}


def test_every_name_of_code_in_a_sentence_exists():
    sources = (
        path.read_text(encoding="utf-8")
        for folder in ("core", "connectors", "plugins", "examples")
        for path in (ROOT / folder).rglob("*.py")
    )
    known = set(re.findall(r"[a-z]\w*_\w+", "\n".join(sources)))
    unknown = {}
    for name in PAGES.keys() - GENERATED:
        sentences = re.sub(r"^```.*?^```", "", PAGES[name], flags=re.DOTALL | re.MULTILINE)
        code = "\n".join(re.findall(r"`([^`\n/]+)`", sentences))
        named = set(re.findall(r"(?<!\w)(?!tocsin_)[a-z][a-z0-9]*(?:_[a-z0-9]+)+", code))
        unknown[name] = named - known
    assert {name: names for name, names in unknown.items() if names} == {}


@each_page
def test_every_sample_is_in_a_language_that_is_run(name):
    languages = set(re.findall(r"^```(\w+)$", PAGES[name], re.MULTILINE))
    run = {
        "seams.md": {"python", "toml"},
        "first-provider.md": {"sh", "console"},
        "debugging.md": {"console"},
    }
    assert languages <= run.get(name, {"python", "toml", "jinja"})


@each_page
def test_every_toml_is_valid(name):
    for sample in re.findall(r"^```toml\n(.*?)^```$", PAGES[name], re.DOTALL | re.MULTILINE):
        tomllib.loads(sample)


def test_the_page_of_the_seams_tells_every_capability():
    told = re.findall(r"^\| `(\w+)` \| `\w+` \|", PAGES["seams.md"], re.MULTILINE)
    assert told == list(Capability)


@pytest.mark.parametrize(
    ("words", "name", "value"),
    [
        ("`overlap` (10 minutes)", "overlap", timedelta(minutes=10)),
        ("`settle_delay` (30 seconds)", "settle_delay", timedelta(seconds=30)),
        ("`first_fetch` (24 hours)", "first_fetch", timedelta(hours=24)),
        (
            "`refresh_after` (2, 10 and 30 minutes)",
            "refresh_after",
            tuple(timedelta(minutes=minutes) for minutes in (2, 10, 30)),
        ),
    ],
)
def test_the_page_of_windows_tells_the_defaults(words, name, value):
    assert words in PAGES["windows.md"]
    assert WindowedProvider.Settings.model_fields[name].default == value


def test_the_page_of_windows_tells_the_limits():
    assert f"the newest {MAX_SEEN:,} digests" in PAGES["windows.md"]
    assert f"more than {MAX_PAGES:,} pages" in PAGES["windows.md"]


def python_of(page: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", PAGES[page], re.DOTALL | re.MULTILINE)


@pytest.mark.full
def test_the_python_of_the_page_of_tests_runs_beside_a_new_provider(tmp_path):
    folder = Scaffold("acme", "provider").make(tmp_path, [])
    for name, kind in (("reputation", "Reputation"), ("lookup", "Lookup"), ("pager", "Pager")):
        [source] = [sample for sample in python_of("seams.md") if f"class {kind}(" in sample]
        (folder / "src" / "tocsin_acme" / f"{name}.py").write_text(source, encoding="utf-8")
    [source] = [sample for sample in python_of("seams.md") if "class AcmeDesk(" in sample]
    (folder / "src" / "tocsin_acme" / "desk.py").write_text(source, encoding="utf-8")
    installed = folder / "src" / "acme_desk-1.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-desk\nVersion: 1\n")
    named = "[tocsin.trackers]\nacme-desk = tocsin_acme.desk:AcmeDesk\n"
    (installed / "entry_points.txt").write_text(named)
    samples = [sample for sample in python_of("testing.md") if "__main__" not in sample]
    (folder / "tests" / "test_of_the_page.py").write_text("\n".join(samples), encoding="utf-8")
    only = "not conformance and not TestAcme or TestAcmeDesk or null_members"
    command = [sys.executable, "-m", "pytest", "-q", "-k", only, "-p", "no:schemathesis"]
    environment = {**os.environ, "PYTHONPATH": str(folder / "src")}
    result = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout
    assert "86 passed" in result.stdout

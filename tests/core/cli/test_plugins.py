"""What an operator sees of plugins, and what an author begins with."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from pathlib import Path

import pytest

from tocsin.cli.scaffold import Scaffold
from tocsin.errors import OperatorError

EXAMPLE = Path(__file__).parents[3] / "examples" / "tocsin-example-provider"
TABLES = {
    "provider": "providers",
    "channel": "destinations",
    "case-channel": "destinations",
    "tracker": "destinations",
    "enricher": "enrichers",
    "investigator": "investigator",
}
EACH_KIND = pytest.mark.parametrize("kind", TABLES)


@pytest.fixture
def configured(tmp_path: Path) -> Path:
    (tmp_path / "plugins.toml").write_text(
        'enabled = ["suricata"]\n[providers.edge]\nplugin = "suricata"\npath = "eve.json"\n'
    )
    return tmp_path


def lines(text: str) -> list[list[str]]:
    return [line.split("\t") for line in text.splitlines()]


def test_a_list_says_what_is_enabled_and_absent(tocsin, configured):
    (configured / "plugins.toml").write_text('enabled = ["suricata", "webhok"]\n')
    status, out, errors = tocsin("plugins", "list")
    listed = {line[0]: line for line in lines(out)}
    assert (status, errors) == (0, "")
    assert listed["suricata"][1:4] == ["providers", "True", "tocsin"]
    assert listed["webhook"][1:3] == ["channels", "False"]
    assert listed["enrichers"][1].startswith("enrichers, ")
    assert listed["templates"][1] == "template paths"
    assert listed["webhok"][1:5] == ["", "True", "", ""]
    assert listed["webhok"][5].endswith("; did you mean 'webhook'?")


def test_a_plugin_is_explained_in_lines_or_json(tocsin, configured):
    status, out, errors = tocsin("plugins", "explain", "suricata")
    told = [line[:2] for line in lines(out)]
    assert (status, errors) == (0, "")
    assert {len(line) for line in lines(out)} == {4}
    for part in (
        ["plugin", "suricata"],
        ["used by", "providers.edge"],
        ["hook", "tocsin_providers"],
        ["offers", "Suricata"],
        ["stream", "changed"],
        ["setting", "path"],
        ["common setting", "poll_interval"],
    ):
        assert part in told
    [kind] = json.loads(tocsin("plugins", "explain", "suricata", "--json")[1])["kinds"]
    assert kind["schema"]["required"] == ["plugin", "path"]


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("suricata", "[providers.<name>]"),
        ("webhook", "[destinations.<name>]"),
        ("rdap", "[enrichers.<name>]"),
        ("investigator", "[investigator]"),
    ],
)
def test_each_kind_is_explained_with_the_table_that_is_for_it(tocsin, configured, name, table):
    _, out, _ = tocsin("plugins", "explain", name)
    assert {line[2] for line in lines(out) if line[0] == "offers"} == {f"for {table}"}


def test_a_secret_is_explained_with_how_to_write_it(tocsin, configured):
    _, out, _ = tocsin("plugins", "explain", "webhook")
    [secret] = [line for line in lines(out) if line[:2] == ["setting", "secret"]]
    assert secret[2] == 'secret: { env = "NAME" } or { file = "path" }'
    assert ["absent", "webhook"] in [line[:2] for line in lines(out)]


def test_a_name_that_is_not_there_is_answered_with_the_nearest(tocsin, configured):
    status, out, errors = tocsin("plugins", "explain", "suricatta")
    assert (status, out) == (2, "")
    assert "did you mean 'suricata'?" in errors
    assert "Traceback" not in errors


def test_a_failed_import_is_shown_where_it_failed_if_that_is_wanted(tocsin, configured):
    (configured / "broken_plugin.py").write_text("import nothing_of_this_name\n")
    folder = configured / "broken_plugin-1.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-plugin\nVersion: 1\n")
    (folder / "entry_points.txt").write_text("[tocsin.plugins]\nbroken = broken_plugin\n")
    status, out, errors = tocsin("plugins", "explain", "broken")
    assert (status, errors) == (1, "")
    assert "could not be imported: ModuleNotFoundError" in out
    _, out, errors = tocsin("plugins", "explain", "broken", "--traceback")
    assert "Traceback" not in out
    assert 'broken_plugin.py", line 1' in errors


@EACH_KIND
def test_a_new_plugin_is_made_and_told_how_to_enable(tocsin, tmp_path, kind):
    status, out, errors = tocsin("plugins", "new", "my-siem", "--kind", kind)
    assert (status, out) == (0, "tocsin-my-siem\n")
    project = tomllib.loads((tmp_path / "tocsin-my-siem/pyproject.toml").read_text())["project"]
    assert project["name"] == "tocsin-my-siem"
    [points] = project["entry-points"].values()
    tracker = "tocsin_my_siem.tracker:MySiemTracker"
    assert points == {"my-siem": tracker if kind == "tracker" else "tocsin_my_siem"}
    assert project["dependencies"] == ["tocsin>=0.1,<0.2"]
    enabling = (tmp_path / "tocsin-my-siem/plugins.toml").read_text()
    assert enabling in errors
    table = tomllib.loads(enabling)[TABLES[kind]]
    plugin = (table if kind == "investigator" else table["my-siem"])["plugin"]
    assert plugin == ("ticketing" if kind == "tracker" else "my-siem")


def test_a_folder_that_is_there_is_left_alone(tocsin, tmp_path):
    (tmp_path / "deep" / "tocsin-acme").mkdir(parents=True)
    arguments = ["plugins", "new", "acme", "--kind", "provider", "--folder", "deep"]
    status, out, errors = tocsin(*arguments)
    assert (status, out) == (2, "")
    assert "tocsin-acme already exists; nothing was written" in errors
    assert list((tmp_path / "deep" / "tocsin-acme").iterdir()) == []


@pytest.mark.parametrize(
    "name", ["", "Acme", "a_b", "-a", "a-", "a--b", "1a", "../a", "a b", "a" * 41, "é", "a\n"]
)
def test_a_name_that_no_distribution_should_have_is_refused(tmp_path, name):
    with pytest.raises(
        OperatorError, match="use at most 40 lowercase letters, digits and single hyphens"
    ):
        Scaffold(name, "provider").make(tmp_path, [])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["suricata", "windowed", "connectors"])
def test_a_name_that_is_taken_is_refused(tmp_path, name):
    with pytest.raises(OperatorError, match="choose another name"):
        Scaffold(name, "provider").make(tmp_path, ["suricata"])
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OperatorError, match="tocsin-acme: Not a directory"):
        Scaffold("acme", "provider").make(tmp_path / "file", [])


@EACH_KIND
@pytest.mark.parametrize("name", ["acme", "my-own-siem", "a" * 40])
def test_every_file_is_filled_whatever_the_name(kind, name):
    files = Scaffold(name, kind).files()
    assert {"pyproject.toml", "plugins.toml", "README.md"} <= files.keys()
    for path, text in files.items():
        assert "$" not in path + text
        if path.endswith(".py"):
            ast.parse(text)
        if path.endswith(".toml"):
            tomllib.loads(text)


@EACH_KIND
def test_the_readme_has_the_lines_that_enable_it(kind):
    scaffold = Scaffold("acme", kind)
    assert f"```toml\n{scaffold.lines()}```" in scaffold.files()["README.md"]


def test_the_readme_of_a_provider_has_every_permission_of_the_class():
    files = Scaffold("acme", "provider").files()
    permissions = re.findall(r'"(\w+:\w+)[",]', files["src/tocsin_acme/provider.py"])
    assert len(permissions) == 4
    assert [each for each in permissions if f"`{each}`" not in files["README.md"]] == []


def test_the_example_is_what_the_template_gives():
    kept = {
        path.relative_to(EXAMPLE).as_posix(): path.read_text(encoding="utf-8")
        for path in EXAMPLE.rglob("*")
        if path.is_file() and not re.search(r"/[._]\w*cache", path.as_posix())
    }
    assert kept == Scaffold("example", "provider").files()

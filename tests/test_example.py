"""What authors begin with, in an environment of its own that holds the built wheel."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import sysconfig
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from tocsin.clock import SystemClock
from tocsin.testing import Siem, Simulator

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "tocsin-example-provider"
TUTORIAL = ROOT / "docs" / "plugin-authors" / "first-provider.md"


class Environment:
    """A virtual environment that has this one's third-party packages, and nothing of ours."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        run([sys.executable, "-m", "venv", "--without-pip", folder])

    def lend(self) -> None:
        """Let it import what is installed here; a path in such a file is no place for more."""
        [packages] = (self.folder / "lib").glob("python*/site-packages")
        (packages / "lent.pth").write_text(sysconfig.get_path("purelib"))

    def run(self, *command: object, cwd: Path, **variables: str) -> str:
        """Return what a command printed, which went well."""
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("TOCSIN_", "PYTEST_", "PYTHON", "COV_"))
        }
        path = f"{self.folder / 'bin'}{os.pathsep}{inherited['PATH']}"
        alone = {
            "PIP_NO_INDEX": "1",
            "PIP_NO_BUILD_ISOLATION": "0",  # pip takes this for yes
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTEST_ADDOPTS": "-p no:schemathesis -p no:cacheprovider",
        }
        return run(list(command), cwd=cwd, env={**inherited, **alone, "PATH": path, **variables})


def run(command: list[object], **options: object) -> str:
    result = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"
    return result.stdout


@pytest.fixture(scope="module")
def environment(tmp_path_factory) -> Environment:
    folder = tmp_path_factory.mktemp("environment")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT]
    run(build)
    environment = Environment(folder / "venv")
    python = folder / "venv" / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", python, "install", "--no-deps"]
    [wheel] = folder.glob("*.whl")
    run([*install, "--no-index", "--disable-pip-version-check", wheel])
    environment.lend()
    return environment


def install(environment: Environment, folder: Path) -> None:
    environment.run("python", "-m", "pip", "install", f"{folder}[test]", cwd=folder.parent)


@pytest.mark.full
def test_what_is_imported_there_is_the_wheel(environment, tmp_path):
    names = "tocsin", "tocsin_plugins", "tocsin_connectors", "tocsin_templates"
    script = f"import {', '.join(names)}\nfor it in ({', '.join(names)}): print(it.__file__)"
    files = environment.run("python", "-c", script, cwd=tmp_path).splitlines()
    assert len(files) == len(names)
    assert all(Path(file).is_relative_to(environment.folder) for file in files)


@pytest.fixture(scope="module")
def example(environment) -> Environment:
    install(environment, EXAMPLE)
    return environment


@pytest.mark.full
def test_the_example_passes_its_own_tests(example, tmp_path):
    printed = example.run("python", "-m", "pytest", "-q", EXAMPLE, cwd=tmp_path)
    passed = re.search(r"(\d+) passed", printed)
    assert passed is not None
    assert int(passed[1]) > 40
    assert "failed" not in printed


def simulator() -> Simulator:
    spec = spec_from_file_location("example_simulator", EXAMPLE / "tests" / "simulator.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.ExampleSimulator(Siem(SystemClock()))


@pytest.mark.full
async def test_two_lines_enable_the_example(example, tmp_path):
    lines = (EXAMPLE / "plugins.toml").read_text()
    assert len(lines.splitlines()) == 2
    async with simulator() as siem:
        place = tmp_path / "plugins.toml"
        place.write_text(lines.replace("https://example.example.com", siem.url))

        def tocsin(*arguments: str) -> str:
            return example.run("tocsin", *arguments, cwd=tmp_path, EXAMPLE_SECRET="a secret")

        listed = tocsin("plugins", "list").splitlines()
        explained = tocsin("plugins", "explain", "example")
        checked = await asyncio.to_thread(tocsin, "check")
    assert "example\tproviders\tTrue\ttocsin-example\t0.1.0\t" in listed
    assert "permission\tcases:read\t\t" in explained.splitlines()
    assert "used by\tproviders.example\t\t" in explained.splitlines()
    assert "providers.example: cases are readable" in checked.splitlines()


@pytest.mark.full
def test_a_new_channel_works_as_it_is(environment, tmp_path):
    environment.run("tocsin", "plugins", "new", "pager", "--kind", "channel", cwd=tmp_path)
    made = tmp_path / "tocsin-pager"
    install(environment, made)
    assert "18 passed" in environment.run("python", "-m", "pytest", "-q", cwd=made)
    place = made / "plugins.toml"
    here = 'https://127.0.0.1", allow_networks = ["127.0.0.0/8"], template = "envelope'
    place.write_text(place.read_text().replace("https://pager.example.com/events", here))
    checked = environment.run("tocsin", "check", cwd=made, PAGER_TOKEN="a token")
    assert "destinations.pager: https://127.0.0.1 is allowed" in checked


@pytest.mark.full
@pytest.mark.parametrize("kind", ["case-channel", "tracker", "enricher", "investigator"])
def test_a_new_plugin_of_each_kind_passes_its_own_tests(environment, tmp_path, kind):
    environment.run("tocsin", "plugins", "new", f"my-{kind}", "--kind", kind, cwd=tmp_path)
    made = tmp_path / f"tocsin-my-{kind}"
    install(environment, made)
    printed = environment.run("python", "-m", "pytest", "-q", cwd=made)
    assert re.search(r"\d+ passed", printed)
    assert "failed" not in printed


@pytest.mark.full
def test_the_page_of_the_first_provider_does_what_it_says(environment, tmp_path):
    _, *samples = re.findall(r"^```sh\n(.*?)^```$", TUTORIAL.read_text(), re.DOTALL | re.MULTILINE)
    script = "set -e\n" + "".join(samples)
    printed = environment.run("bash", "-c", script, cwd=tmp_path)
    untouched, broken = re.findall(r"(?:(\d+) failed, )?\d+ passed", printed)
    assert untouched == ""
    assert int(broken) > 0
    assert "offers\tAcmeProvider\tfor [providers.<name>]" in printed

"""Contents of the built distributions."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT]
    subprocess.run(command, check=True, capture_output=True)
    [wheel] = folder.glob("*.whl")
    return wheel


def test_the_wheel_installs_four_packages_and_nothing_generic(wheel):
    names = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    packages = {name for name in names if not name.startswith("tocsin-")}
    assert packages == {"tocsin", "tocsin_plugins", "tocsin_connectors", "tocsin_templates"}


@pytest.mark.parametrize(
    "file",
    [
        "tocsin/py.typed",
        "tocsin/store/migrations/versions/r0001_first_schema.py",
        "tocsin_templates/envelope/incident-alert.json.j2",
        "tocsin/web/routes/docs.html.j2",
        "tocsin/web/routes/docs.css",
        "tocsin/cli/scaffold/provider/pyproject.toml.tmpl",
        "tocsin/cli/demo/scenarios.toml",
        "tocsin/cli/scaffold/plugins.toml",
        "tocsin_connectors/siem/push/mappings/alertmanager.json.j2",
        "tocsin-0.1.0.data/data/share/tocsin/plugins.toml",
        "tocsin-0.1.0.dist-info/licenses/LICENSE",
    ],
)
def test_the_wheel_holds_what_is_no_code(wheel, file):
    assert file in zipfile.ZipFile(wheel).namelist()


def test_the_wheel_passes_its_check(wheel):
    command = [Path(sys.executable).parent / "check-wheel-contents", wheel]
    result = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert result.returncode == 0, result.stdout


@pytest.mark.full
def test_the_wheel_holds_a_first_configuration_and_the_demo(wheel, tmp_path):
    installed, here = tmp_path / "installed", tmp_path / "here"
    zipfile.ZipFile(wheel).extractall(installed)
    here.mkdir()
    own = {name: value for name, value in os.environ.items() if not name.startswith("TOCSIN_")}
    environment = {**own, "PYTHONPATH": str(installed), "DEMO_PORT": "0", "DEMO_RECEIVER_PORT": "0"}
    command = [sys.executable, "-m", "tocsin"]
    subprocess.run([*command, "init"], cwd=here, env=environment, check=True)
    assert (here / "plugins.toml").exists()
    with subprocess.Popen(
        [*command, "demo"], cwd=here, env=environment, stdout=subprocess.PIPE, text=True
    ) as demo:
        lines = []
        while not any("  verified  #" in line for line in lines):
            lines.append(demo.stdout.readline())
            assert lines[-1], lines
        demo.terminate()
        assert "Stopped." in demo.stdout.read()
    assert demo.returncode == 0
    assert any("  Console " in line for line in lines)
    assert (here / "data/demo/tocsin.db").exists()
    log = (here / "data/demo/serve.log").read_text()
    assert "Traceback" not in log


def test_everything_public_is_documented_and_importable():
    import tocsin

    for name in tocsin.__all__:
        assert getattr(tocsin, name).__doc__ or name in {"Duration", "LocalPath", "ServerUrl"}, name


def test_the_source_roots_are_not_packages():
    for root in ("core", "plugins", "connectors", "templates"):
        assert not (ROOT / root / "__init__.py").exists()

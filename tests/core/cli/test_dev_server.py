"""`tocsin serve --dev` replaces the service when a file of a plugin changes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import tocsin_connectors
import tocsin_plugins
from tocsin.cli.dev_server import DevServer, _list_files, _stamp_files
from tocsin.settings import Settings


@pytest.fixture
def server(tmp_path):
    return DevServer(Settings(plugins_file=tmp_path / "plugins.toml", data_dir=tmp_path))


def test_the_code_of_every_installed_plugin_is_watched(server):
    folders = set(server._list_places())
    assert {Path(each.__file__).parent for each in (tocsin_connectors, tocsin_plugins)} <= folders
    files = {path.name for folder in folders for path in _list_files(folder)}
    assert "__init__.py" in files
    assert not any(name.endswith(".pyc") for name in files)


def test_a_change_is_noticed_once_it_is_written(server, tmp_path):
    plugins = tmp_path / "plugins.toml"
    stopped = subprocess.Popen([sys.executable, "-c", ""])
    stopped.wait()
    places = server._list_places()
    stamps = _stamp_files(places)
    threading.Timer(0.1, plugins.touch).start()
    assert server._wait_for_change(places, stamps, stopped) == plugins
    server._stop()
    assert server._wait_for_change(places, stamps, stopped) is None


@pytest.mark.full
def test_a_mistake_stops_the_service_until_it_is_corrected(tmp_path):
    plugins = tmp_path / "plugins.toml"
    plugins.touch()
    own = {name: value for name, value in os.environ.items() if not name.startswith("TOCSIN_")}
    process = subprocess.Popen(
        [sys.executable, "-m", "tocsin", "serve", "--dev"],
        cwd=tmp_path,
        env={**own, "TOCSIN_PORT": "0", "TOCSIN_LOG_FORMAT": "console"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )

    def wait_for(text: str) -> None:
        assert any(text in line for line in process.stdout), f"it ended before it printed {text!r}"

    try:
        wait_for(" started ")
        plugins.write_text("plugns = 3")
        wait_for("plugns: unknown key")
        wait_for("waiting for a file to change")
        plugins.write_text("")
        wait_for(" started ")
        process.send_signal(signal.SIGTERM)
        wait_for("stopped")
        assert process.wait() == 0
    finally:
        process.terminate()
        process.communicate()

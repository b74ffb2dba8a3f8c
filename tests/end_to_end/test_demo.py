"""The demo, as whoever types `make run` sees it."""

import json
import os
import re
import shlex
import signal
import stat
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address, ip_network

import pytest

from tocsin.cli.demo.receiver import say
from tocsin.cli.demo.week import week

VERIFIED = re.compile(r"  verified  #(\d+) +(Medium|High|Critical) +\S")
# RFC 5737, RFC 3849 and RFC 1918
SET_ASIDE = [
    ip_network(network)
    for network in (
        *("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32"),
        *("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"),
    )
]


class Screen:
    """One run of the demo, and what it has printed so far."""

    def __init__(self, folder):
        self.text = ""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tocsin", "demo"],
            env={**os.environ, "DEMO_DIR": folder, "DEMO_PORT": "0", "DEMO_RECEIVER_PORT": "0"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        if self._process.poll() is None:
            self._process.terminate()
        self._process.communicate(timeout=60)

    def read_until(self, pattern):
        while not (match := re.search(pattern, self.text)):
            line = self._process.stdout.readline()
            assert line, self.text
            self.text += line
        return match

    def stop(self, number):
        self._process.send_signal(number)
        rest, _ = self._process.communicate(timeout=60)
        self.text += rest
        return self._process.returncode

    @property
    def key(self):
        return self.read_until(r"API key +(sk_live_\S+)")[1]

    @property
    def numbers(self):
        return {int(number) for number, _ in VERIFIED.findall(self.text)}

    def curl(self):
        """Return what the printed command asks for."""
        command = self.read_until(r"  (curl .*\\\n.*)\n")[1]
        _, option, header, url = shlex.split(command.replace("\\\n", ""))
        assert option == "-H"
        request = urllib.request.Request(url, headers=dict([header.split(": ")]))
        with urllib.request.urlopen(request, timeout=10) as response:
            return json.load(response)


def test_the_demo_shows_verified_deliveries(tmp_path):
    with Screen(tmp_path) as screen:
        screen.read_until(VERIFIED)
        assert screen.curl()["incidents"]
        assert screen.stop(signal.SIGINT) == 0
    assert re.search(r"Stopped\. Deliveries verified in this run: \d+", screen.text)


@pytest.mark.full
def test_the_demo_goes_on_where_it_stopped(tmp_path):
    with Screen(tmp_path) as first:
        first.read_until(VERIFIED)
        address, code = first.read_until(r"Console: (http\S+)#(\S+)").groups()
        sign_in = urllib.request.Request(address, urllib.parse.urlencode({"code": code}).encode())
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with opener.open(sign_in, timeout=10) as page:
            assert b"Overview" in page.read()
        found = first.curl()["incidents"]
        assert found
        assert {incident["severity"] for incident in found} == {"High"}
        assert first.stop(signal.SIGINT) == 0
    written = json.loads((tmp_path / "feed.json").read_text())["alerts"]
    for name in ("api.key", "webhook.secret"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600

    with Screen(tmp_path) as second:
        second.read_until(VERIFIED)
        assert second.key == first.key
        assert second.stop(signal.SIGTERM) == 0
    assert max(second.numbers) > max(first.numbers)
    assert not second.numbers & first.numbers
    assert json.loads((tmp_path / "feed.json").read_text())["alerts"] > written

    for screen in (first, second):
        assert re.search(r"Stopped\. Deliveries verified in this run: \d+", screen.text)
        assert "Traceback" not in screen.text
        assert "\x1b" not in screen.text
    assert "Traceback" not in (tmp_path / "serve.log").read_text()


@pytest.mark.full
def test_a_delivery_that_was_not_signed_is_refused(tmp_path):
    with Screen(tmp_path) as screen:
        screen.read_until(VERIFIED)
        url = re.search(r'^url = "(.*)"', (tmp_path / "plugins.toml").read_text(), re.MULTILINE)[1]
        headers = {
            "webhook-id": "evt_1",
            "webhook-timestamp": str(int(time.time())),
            "webhook-signature": "v1,AAAA",
        }
        with pytest.raises(urllib.error.HTTPError, match="400") as refused:
            urllib.request.urlopen(urllib.request.Request(url, b"{}", headers), timeout=10)
        refused.value.close()
        screen.read_until("refused: invalid signature")


def test_long_lines_that_threads_write_at_once_stay_whole(tmp_path):
    lines = ["x" * length for length in range(9_000, 9_200)]
    path = tmp_path / "out"
    with path.open("w") as file, ThreadPoolExecutor(16) as threads:
        list(threads.map(lambda line: say(line, file), lines))
    assert sorted(path.read_text().splitlines()) == lines


@pytest.mark.full
def test_a_service_that_cannot_start_is_shown_with_its_reason(tmp_path):
    (tmp_path / "encryption.key").write_text("nonsense")
    with Screen(tmp_path) as screen:
        screen.read_until("found an invalid encryption key")
        assert screen.stop(0) == 1
    assert "Traceback" not in screen.text


@pytest.mark.parametrize("number", range(3))
def test_a_week_holds_hundreds_of_alerts_from_addresses_that_are_set_aside(number):
    alerts = []
    damaged = 0
    for line in week(number):
        try:
            record = json.loads(line)
            addresses = [ip_address(record[key]) for key in ("src_ip", "dest_ip")]
        except (ValueError, KeyError):
            damaged += 1
            continue
        assert all(any(address in network for network in SET_ASIDE) for address in addresses)
        alerts += [record["alert"]["signature_id"]] if "alert" in record else []
    assert len(alerts) > 250
    assert len(set(alerts)) > 15
    assert 3 <= damaged <= 20

"""Alerting rules: accepted by Prometheus, about metrics that there are, each with a runbook."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
RULES = ROOT / "deploy" / "prometheus" / "tocsin.rules.yml"
FAULTS = Path(__file__).parent / "alert_faults.yml"
PAGE = (ROOT / "docs" / "operators" / "alerts.md").read_text(encoding="utf-8")
METRICS = (ROOT / "docs" / "operators" / "metrics.md").read_text(encoding="utf-8")
PROMTOOL = Path(
    os.environ.get("TOCSIN_PROMTOOL", ROOT / ".components" / "prometheus" / "usr/bin/promtool")
)
GROUPS = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
ALERTS = [rule for group in GROUPS for rule in group["rules"]]


@pytest.mark.skipif(not PROMTOOL.is_file(), reason=f"no promtool at {PROMTOOL}; run .ci/components")
def test_prometheus_accepts_the_rules():
    checked = subprocess.run(
        [PROMTOOL, "check", "rules", "--lint-fatal", RULES], capture_output=True, check=False
    )
    assert checked.returncode == 0, checked.stderr.decode()


@pytest.mark.skipif(not PROMTOOL.is_file(), reason=f"no promtool at {PROMTOOL}; run .ci/components")
def test_each_fault_fires_its_alerts_and_no_others():
    tested = subprocess.run(
        [PROMTOOL, "test", "rules", FAULTS], capture_output=True, check=False, text=True
    )
    assert tested.returncode == 0, tested.stdout + tested.stderr


def test_every_alert_has_a_runbook_and_no_other_has_one():
    runbooks = re.findall(r"^### (Tocsin\w+)$", PAGE, re.MULTILINE)
    assert runbooks == [rule["alert"] for rule in ALERTS]


def test_every_alert_says_how_severe_it_is_and_what_happens():
    for rule in ALERTS:
        assert rule["labels"]["severity"] in {"critical", "warning"}, rule["alert"]
        assert rule["annotations"]["summary"].endswith("."), rule["alert"]


def test_the_rules_ask_only_for_metrics_that_there_are():
    known = set(re.findall(r"^\| `(tocsin_\w+)` \|", METRICS, re.MULTILINE))
    for rule in ALERTS:
        asked = {
            name.removesuffix("_bucket") for name in re.findall(r"tocsin_[a-z_]+", rule["expr"])
        }
        assert asked <= known, rule["alert"]

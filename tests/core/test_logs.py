"""What anyone can cause is logged as often as it can be read."""

from __future__ import annotations

from structlog.testing import capture_logs

from tocsin.logs import SAMPLED_EVERY, SampledLog


def test_an_event_is_logged_once_per_interval_with_the_number_left_out():
    now = 0.0
    with capture_logs() as logs:
        log = SampledLog(lambda: now)
        for _ in range(300):
            log.warning("not ready", reason="x")
        log.warning("sign-in rejected")
        now = SAMPLED_EVERY.total_seconds()
        log.warning("not ready", reason="y")
    assert [(line["event"], line.get("left_out")) for line in logs] == [
        ("not ready", None),
        ("sign-in rejected", None),
        ("not ready", 299),
    ]

"""Background loops: they survive failures, and end on cancellation."""

from __future__ import annotations

import asyncio
import json

import pytest
import structlog

from tocsin.logs import configure_logs
from tocsin.loops import run_forever


@pytest.mark.parametrize(
    ("error", "level"),
    [
        (ValueError("a bug"), "error"),
        (asyncio.CancelledError(), "error"),
        (ConnectionRefusedError("away"), "warning"),
    ],
)
async def test_a_step_that_fails_is_said_and_tried_again(clock, error, level):
    script = [error, None, error]
    ended = asyncio.Event()

    async def step() -> None:
        if not script:
            ended.set()
            await asyncio.Event().wait()
        elif error := script.pop(0):
            raise error

    with structlog.testing.capture_logs() as logs:
        loop = asyncio.create_task(run_forever(step, clock, "stepping"))
        async with asyncio.timeout(10):
            await ended.wait()
        loop.cancel()
        await asyncio.wait([loop])
    assert loop.cancelled()
    assert [line["log_level"] for line in logs] == [level, level]


def test_a_log_line_is_json_whatever_it_holds(capsys):
    before = structlog.get_config()
    try:
        configure_logs("json")
        structlog.get_logger().warning("odd", path="caf\udce9", thing=object())
    finally:
        structlog.configure(**before)
    line = json.loads(capsys.readouterr().err)
    assert (line["event"], line["level"], line["path"]) == ("odd", "warning", "caf\udce9")

"""Detections by their false positives: API and console."""

from __future__ import annotations

from api_callers import INCIDENTS, Caller
from api_server import problem
from incident_rows import add_incidents

PATH = f"{INCIDENTS}/detections"


async def test_a_detection_is_listed_with_its_dispositions(api):
    await api.services.database.write(add_incidents, 2, title="<i>Scan</i>")
    analyst = Caller(api, await api.analyst())
    assert await analyst.read(PATH) == {"detections": []}
    for number, disposition in ((1, "false-positive"), (2, "true-positive")):
        await analyst.ask("PATCH", f"{INCIDENTS}/{number}", json={"disposition": disposition})
    [found] = (await analyst.read(f"{PATH}?timespan=P1D"))["detections"]
    assert found == {
        "provider": "sensors",
        "rule": None,
        "title": "<i>Scan</i>",
        "incident_count": 2,
        "dispositions": {"true-positive": 1, "false-positive": 1},
        "false_positive_ratio": 0.5,
        "latest_incident": 2,
    }


async def test_a_timespan_that_is_too_long_is_refused(api):
    answer = await api.client.get(f"{PATH}?timespan=P9999D", headers=await api.reader())
    await problem(answer, 422)

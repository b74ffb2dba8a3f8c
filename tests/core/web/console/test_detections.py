"""Detections in the console."""

from __future__ import annotations

import pytest
from sqlalchemy import insert

from incident_rows import NOW, add_incidents
from tocsin.store.tables import incident_alerts


async def test_the_page_lists_detections_and_the_incident_list_links_to_it(person, api):
    await api.services.database.write(add_incidents, title="<i>Scan</i>")
    assert "No dispositions match these filters." in await person.html("/detections")
    form = {"disposition": "false-positive", "disposition_reason": "a test"}
    await person.submit("/incidents/1", "/incidents/1/classify", **form)
    page = await person.html("/detections?timespan=P7D")
    assert "&lt;i&gt;Scan" in page
    assert "100%" in page
    assert "Title; no rule reported" in page
    assert 'href="/detections"' in await person.html("/incidents")


@pytest.mark.parametrize(
    ("title", "latest"), [("<i>Scan</i>", 0), ("Scan of web-1", 1)], ids=["same", "different"]
)
async def test_a_rule_has_the_title_of_its_latest_alert_if_it_differs(person, api, title, latest):
    await api.services.database.write(add_incidents, alerts=1)
    row = {"incident_number": 1, "external_id": "a", "title": title, "rule": "<i>Scan</i>"}
    statement = insert(incident_alerts).values(**row, severity="High", occurred_at=NOW)
    await api.services.database.write(lambda connection: connection.execute(statement))
    form = {"disposition": "false-positive", "disposition_reason": "a test"}
    await person.submit("/incidents/1", "/incidents/1/classify", **form)
    page = await person.html("/detections")
    assert '<th scope="row"><bdi>&lt;i&gt;Scan&lt;/i&gt;</bdi>' in page
    assert page.count("Latest alert: <bdi>Scan of web-1</bdi>") == latest

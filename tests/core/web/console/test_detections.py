"""Detections in the console."""

from __future__ import annotations

from incident_rows import add_incidents


async def test_the_page_lists_detections_and_the_incident_list_links_to_it(person, api):
    await api.services.database.write(add_incidents, title="<i>Scan</i>")
    assert "No dispositions match these filters." in await person.html("/detections")
    form = {"disposition": "false-positive", "disposition_reason": "a test"}
    await person.submit("/incidents/1", "/incidents/1/classify", **form)
    page = await person.html("/detections?timespan=P7D")
    assert "&lt;i&gt;Scan" in page
    assert "100%" in page
    assert 'href="/detections"' in await person.html("/incidents")

"""What a receiver would be sent for a delivery, over HTTP."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import update

from api_callers import DESTINATIONS, GOOD_DESTINATION, Admin
from api_server import CONFIGURATION, open_api, problem
from delivery_rows import add_delivery, add_destination
from tocsin.delivery import load_destination
from tocsin.registry import ManagedBy
from tocsin.store.tables import destinations
from tocsin.web.schemas.deliveries import DeliveryBody

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
SECRET = GOOD_DESTINATION["settings"]["secret"]


@pytest.fixture
def write(api):
    return api.services.database.write


@pytest.fixture
async def body(admin, write):
    """Make a destination of these settings, and return what it would be sent."""

    async def body(**settings):
        settings = {**GOOD_DESTINATION["settings"], **settings}
        await admin.ask("POST", DESTINATIONS, 201, json=GOOD_DESTINATION | {"settings": settings})
        return await read(admin, await write(add_delivery, to="soar"))

    return body


async def read(admin: Admin, delivery_id: str) -> dict:
    found = await admin.read(f"/api/admin/deliveries/{delivery_id}/body")
    DeliveryBody.model_validate(found)
    assert SECRET not in str(found)
    return found


async def test_the_event_is_rendered_by_the_destinations_templates(body):
    found = await body()
    assert (found["destination"], found["template"], found["reason"]) == ("soar", "envelope", None)
    [part] = found["parts"]
    assert (part["name"], part["reason"]) == ("body", None)
    assert json.loads(part["content"])["data"] == {"incident_number": 1}


async def test_no_secret_is_in_it(body):
    secret = "s3cret-of-the-body"
    found = await body(body_secrets={"token": secret}, headers={"Authorization": secret})
    assert found["parts"][0]["content"]
    assert secret not in str(found)


async def test_what_the_receiver_would_not_take_is_said(body):
    found = await body(template="pagerduty")
    # the event of this delivery lacks nearly everything
    assert found["breaches"] or found["parts"][0]["reason"]


async def test_a_template_that_fails_says_where(database, clock, tmp_path: Path):
    folder = tmp_path / "broken"
    folder.mkdir()
    (folder / "incident-alert.json.j2").write_text("{{ event.nothing.at_all }}")
    configuration = replace(CONFIGURATION, template_paths=(*CONFIGURATION.template_paths, tmp_path))
    async with open_api(database, clock, configuration) as api:
        admin = Admin(api, await api.admin())
        settings = {**GOOD_DESTINATION["settings"], "template": "broken"}
        await admin.ask("POST", DESTINATIONS, 201, json=GOOD_DESTINATION | {"settings": settings})
        id_ = await database.write(add_delivery, to="soar")
        [part] = (await read(admin, id_))["parts"]
    assert part["content"] is None
    assert "incident-alert.json.j2" in part["reason"]


async def test_why_nothing_is_rendered_is_said(api, admin, write):
    await write(add_destination, "soc")
    id_ = await write(add_delivery, to="soc")
    assert "secret" in (await read(admin, id_))["reason"]  # its settings lack one
    for members, words in (
        ({"plugin": "pigeon"}, "'pigeon' is not available on this node"),
        ({"managed_by": ManagedBy.PLUGIN}, "receives the event itself"),
        ({"state": "deleted"}, "was deleted"),
    ):
        await write(lambda c, it=members: c.execute(update(destinations).values(it)))
        found = await read(admin, id_)
        assert words in found["reason"]
        assert (found["template"], found["parts"]) == (None, [])
    assert await api.services.database.read(load_destination, "soc")


async def test_a_delivery_that_there_is_not_is_a_404(api, admin):
    path = "/api/admin/deliveries/dlv_none/body"
    await problem(await admin.send("GET", path), 404)
    assert (await api.client.get(path)).status == 401

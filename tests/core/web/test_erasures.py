"""Erasure over HTTP, by admins alone."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from incident_rows import add_incidents
from tocsin.store.tables import audit
from tocsin.web.schemas.erasures import ErasureReceipt

ERASURES = "/api/admin/erasures"
pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


async def test_an_admin_erases_and_the_audit_log_names_the_pseudonym(
    api, admin, analyst, monkeypatch, tmp_path
):
    monkeypatch.chdir(tmp_path)
    await api.services.database.write(add_incidents, title="logon of j.doe")
    tried = await admin.ask("POST", ERASURES, 200, json={"entity": "user:J.DOE", "dry_run": True})
    assert (await analyst.read("/api/v1/incidents/1"))["title"] == "logon of j.doe"
    done = await admin.ask("POST", ERASURES, 200, json={"entity": "user:j.doe"})
    ErasureReceipt.model_validate(done)
    assert tried["erased"] == done["erased"] == {"incidents": 1}
    title = (await analyst.read("/api/v1/incidents/1"))["title"]
    assert title == f"logon of {done['pseudonym']}"
    entries = select(audit.c.actor, audit.c.target).where(audit.c.action == "entity.erase")
    found = await api.services.database.read(lambda c: c.execute(entries).all())
    assert found == [("admin:ana", f"user:{done['pseudonym']}")]


async def test_what_cannot_be_erased_is_said(admin):
    answer = await admin.ask("POST", ERASURES, 422, json={"entity": "person:j.doe"})
    assert "use KIND:VALUE" in str(answer)

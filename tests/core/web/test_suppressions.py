"""Suppression rules, over HTTP."""

from __future__ import annotations

import pytest

from tocsin.web.schemas.suppressions import SuppressionItem, SuppressionList

SUPPRESSIONS = "/api/admin/suppressions"
RULE = {
    "name": "pentest",
    "owner": "ana",
    "reason": "A test, announced until Friday",
    "ends_at": "2026-11-22T12:00:00Z",
    "title": "Port scan*",
}


async def test_a_rule_is_created_listed_and_ended_with_audit_entries(admin):
    made = await admin.ask("POST", SUPPRESSIONS, 201, json=RULE)
    SuppressionItem.model_validate(made)
    assert (made["is_active"], made["suppressed_events"], made["cidr"]) == (True, 0, None)
    assert await admin.read(f"{SUPPRESSIONS}/pentest") == made
    await admin.ask("POST", SUPPRESSIONS, 201, json=RULE | {"name": "scan"})
    for _ in range(2):
        ended = await admin.ask("DELETE", f"{SUPPRESSIONS}/pentest")
        assert ended["is_active"] is False
    page = await admin.read(f"{SUPPRESSIONS}?limit=1")
    SuppressionList.model_validate(page)
    following = await admin.read(f"{SUPPRESSIONS}?limit=1&cursor={page['next_cursor']}")
    shown = [rule["name"] for each in (page, following) for rule in each["suppressions"]]
    assert (shown, following["next_cursor"]) == (["pentest", "scan"], None)
    active = await admin.read(f"{SUPPRESSIONS}?active=true")
    assert [rule["name"] for rule in active["suppressions"]] == ["scan"]
    [entry] = await admin.audited(action="suppression.end")
    assert entry["target"] == "suppression:pentest"
    [_, entry] = await admin.audited(action="suppression.create")
    assert (entry["details"]["owner"], entry["details"]["title"]) == ("ana", "Port scan*")


@pytest.mark.parametrize(
    ("members", "part"),
    [
        ({"title": None}, "add a condition"),
        ({"title": "**"}, "other than *"),
        ({"cidr": "192.0.2.1/24"}, "host bits"),
        ({"ends_at": "2026-11-21T11:00:00Z"}, "in the future"),
        ({"ends_at": "2028-11-21T11:00:00Z"}, "at most 366 days"),
        ({"owner": ""}, "owner"),
        ({"reason": " "}, "reason"),
        ({"provider": "edgy"}, "there is no provider 'edgy'"),
    ],
)
async def test_a_rule_that_would_match_too_much_or_nothing_is_refused(admin, members, part):
    refused = await admin.ask("POST", SUPPRESSIONS, 422, json=RULE | members)
    assert part in str(refused)


async def test_an_end_that_has_passed_is_named_like_every_other_mistake(admin):
    late = {"ends_at": "2026-11-21T11:00:00Z"}
    [error] = (await admin.ask("POST", SUPPRESSIONS, 422, json=RULE | late))["errors"]
    assert error.keys() == {"path", "detail"}
    assert error["path"] == "ends_at"


async def test_names_are_not_used_twice_and_unknown_rules_are_not_found(admin):
    await admin.ask("POST", SUPPRESSIONS, 201, json=RULE)
    await admin.ask("DELETE", f"{SUPPRESSIONS}/pentest")
    await admin.ask("POST", SUPPRESSIONS, 409, json=RULE)
    await admin.ask("GET", f"{SUPPRESSIONS}/other", 404)
    await admin.ask("DELETE", f"{SUPPRESSIONS}/other", 404)

"""Administering schedules over HTTP, running them, and reading what became of their runs."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from aiohttp.test_utils import TestClient, TestServer

from api_callers import Admin
from api_server import URL, problem
from schedule_harness import Office
from tocsin.recurrence import ScheduleDefinition
from tocsin.schedules import apply_schedules
from tocsin.web import make_app
from tocsin.web.pagination import CompositeCursor, PageCursor
from tocsin.web.schemas.schedules import (
    LIST,
    RUNS,
    RunList,
    ScheduleDetail,
    ScheduleList,
    ScheduleRun,
    UpcomingList,
)

SCHEDULES = "/api/admin/schedules"
UPCOMING = f"{SCHEDULES}/upcoming"
NIGHTLY = {"name": "nightly", "query": "new logins", "cron": "0 2 * * *"}
NOW = "2026-11-21T12:00:00.000Z"
NOWHERE = ["x", "sch_x", "1", "sch_01KAH4Q7ZB2N8D5M3X9R6T1V0W", "%00", "%ED%B3%BF", "s" * 5000]
ONCE = {"Idempotency-Key": "8e03978e-40d5-43dd-bc93-6894a57f9324"}

on_one_database = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@pytest.fixture
async def admin(api) -> Admin:
    """Calls by a token that lives for as long as schedules need to run."""
    return Admin(api, {"Authorization": f"Bearer {await api.token(days=7)}"})


@pytest.fixture
def office(api, clock) -> Office:
    return Office(api.services.database, clock)


@pytest.fixture
def nightly(admin):
    """Create a schedule, and return it as it is answered; None takes a member away."""

    async def nightly(name: str = "nightly", **members):
        body = NIGHTLY | members | {"name": name}
        given = {member: value for member, value in body.items() if value is not None}
        return await admin.ask("POST", SCHEDULES, 201, json=given)

    return nightly


@pytest.fixture
def apply_file(api):
    """Make the schedules those of a file, each with members of its own."""

    async def apply_file(**tables: dict[str, str]) -> None:
        services = api.services
        usual = {"query": "new logins", "interval": "1h"}
        wanted = {name: ScheduleDefinition(**usual | it) for name, it in tables.items()}
        await services.database.write(apply_schedules, wanted, "file", services.clock.now())

    return apply_file


def path_of(schedule_id: str, part: str = "") -> str:
    return f"{SCHEDULES}/{schedule_id}{part}"


async def id_of(admin, name: str = "nightly") -> str:
    listed = (await admin.read(SCHEDULES))["schedules"]
    return next(item["id"] for item in listed if item["name"] == name)


async def act(admin, schedule_id: str, action: str, status: int = 200):
    return await admin.ask("POST", path_of(schedule_id, f"/{action}"), status)


async def refused(admin, method: str, path: str, status: int = 409, **body) -> str:
    """Return why a request is refused."""
    response = await admin.send(method, path, **({"json": body} if body else {}))
    return (await problem(response, status))["detail"]


async def wrong(admin, method: str = "POST", path: str = SCHEDULES, **body) -> dict[str, str]:
    """Return what is wrong with a body, by its paths."""
    document = await problem(await admin.send(method, path, json=body), 422)
    assert document["type"] == "/problems/invalid-request"
    return {mistake["path"]: mistake["detail"] for mistake in document["errors"]}


# Creating


async def test_a_created_schedule_is_answered_with_its_next_three_times(admin, nightly):
    created = await nightly(timezone="Europe/Berlin", persona="EXECUTIVE", timeout="90s")
    ScheduleDetail.model_validate(created)
    schedule_id = created["id"]
    assert created == {
        **NIGHTLY,
        "id": schedule_id,
        "managed_by": "api",
        "persona": "executive",
        "provider": None,
        "interval": None,
        "timezone": "Europe/Berlin",
        "jitter": None,
        "starts_at": None,
        "ends_at": None,
        "timeout": "PT1M30S",
        "misfire_grace": "PT1H",
        "overlap": "skip",
        "failure_limit": None,
        "tags": [],
        "status": "active",
        "disabled_reason": None,
        "consecutive_failures": 0,
        "last_status": None,
        "last_error": None,
        "last_run_at": None,
        "next_run_at": "2026-11-22T01:00:00.000Z",
        "revision": 1,
        "created_by": "ana",
        "created_at": NOW,
        "updated_at": NOW,
        "url": f"{URL}/schedules/{schedule_id}",
        "upcoming": [f"2026-11-{day}T01:00:00.000Z" for day in (22, 23, 24)],
    }
    assert await admin.read(path_of(schedule_id)) == created


@on_one_database
async def test_an_interval_counts_from_when_it_was_made_or_from_its_beginning(nightly):
    quarterly = await nightly("quarterly", cron=None, interval="15m")
    assert quarterly["interval"] == "PT15M"
    assert [at[11:16] for at in quarterly["upcoming"]] == ["12:15", "12:30", "12:45"]
    begins = {"starts_at": "2026-11-21T13:05:00+01:00", "ends_at": "2026-11-21T12:20:00Z"}
    later = await nightly("later", cron=None, interval="PT15M", **begins)
    assert [at[11:16] for at in later["upcoming"]] == ["12:05", "12:20"]


@on_one_database
async def test_jitter_puts_each_time_off_by_less_than_it(nightly):
    jittery = await nightly(jitter="PT10M")
    assert jittery["next_run_at"] == jittery["upcoming"][0]
    for at in jittery["upcoming"]:
        assert "02:00" <= at[11:16] < "02:10"


@on_one_database
async def test_what_will_never_run_again_has_no_times(nightly):
    over = await nightly(ends_at="2026-11-21T12:30:00Z")
    assert (over["status"], over["next_run_at"], over["upcoming"]) == ("active", None, [])


@on_one_database
async def test_a_creation_that_is_sent_again_with_its_key_takes_effect_once(admin):
    first = await admin.ask("POST", SCHEDULES, 201, json=NIGHTLY, headers=ONCE)
    assert await admin.ask("POST", SCHEDULES, 201, json=NIGHTLY, headers=ONCE) == first
    assert (await admin.read(SCHEDULES))["total"] == 1


async def test_a_name_is_taken_until_its_schedule_is_deleted(admin, nightly, apply_file):
    await apply_file(hourly={})
    created = await nightly()
    for name in ("nightly", "hourly"):
        document = await problem(
            await admin.send("POST", SCHEDULES, json=NIGHTLY | {"name": name}), 409
        )
        assert document["type"] == "/problems/name-taken"
    await admin.ask("DELETE", path_of(created["id"]))
    assert (await nightly())["id"] != created["id"]


async def test_of_two_that_take_a_name_at_once_one_gets_it(nodes):
    headers = await nodes[0].admin()
    sent = [Admin(node, headers).send("POST", SCHEDULES, json=NIGHTLY) for node in nodes]
    responses = await asyncio.gather(*sent)
    assert sorted(response.status for response in responses) == [201, 409]


# What is wrong


@on_one_database
async def test_every_wrong_member_is_named_at_once_with_what_would_be_right(admin):
    mistakes = await wrong(
        admin,
        name="a b",
        query=" ",
        persona="boss",
        cron="61 2 * * *",
        timezone="Europe/Berln",
        interval="9s",
        jitter=5,
        starts_at="2026-11-21T12:00:00",
        timeout="25h",
        overlap="both",
        failure_limit=0,
        tags=["night", "a b"],
        provder="edge",
    )
    words = {
        "name": "letters, digits, - and _",
        "query": "at least 1 character",
        "persona": "analyst, threat-hunter",
        "cron": "the minute field '61' is invalid: use 0 to 59",
        "timezone": "did you mean 'Europe/Berlin'?",
        "interval": "from 10s to 366d",
        "jitter": "'30s'",
        "starts_at": "timezone",
        "timeout": "from 10s to 1d",
        "overlap": "skip, queue",
        "failure_limit": "greater than or equal to 1",
        "tags.1": "use 1 to 50 letters, digits",
        "provder": "did you mean 'provider'?",
    }
    assert mistakes.keys() == words.keys()
    for path, expected in words.items():
        assert expected in mistakes[path]
    assert (await admin.read(SCHEDULES, status="active"))["total"] == 0


@pytest.mark.parametrize(
    ("members", "where", "words"),
    [
        ({"interval": "1h"}, "interval", "either `cron` or `interval`; both are given"),
        ({"cron": None}, "interval", "either `cron` or `interval`; neither is given"),
        ({"jitter": "P1D"}, "jitter", "the runs are 1d apart; use a shorter jitter"),
        (
            {"starts_at": "2026-11-22T00:00:00Z", "ends_at": "2026-11-22T00:00:00Z"},
            "ends_at",
            "after `starts_at`",
        ),
        ({"ends_at": "2026-11-20T00:00:00Z"}, "ends_at", "it has passed"),
    ],
)
@on_one_database
async def test_members_that_do_not_go_together_are_refused(admin, members, where, words):
    [(path, detail)] = (await wrong(admin, **NIGHTLY | members)).items()
    assert (path, words in detail) == (where, True)


@on_one_database
async def test_an_unknown_provider_is_refused_with_the_nearest_one(admin, nightly):
    assert (await nightly(provider="edge"))["provider"] == "edge"
    schedule_id = await id_of(admin)
    unknown = {"provider": "egde"}
    for mistakes in (
        await wrong(admin, **NIGHTLY | unknown),
        await wrong(admin, "PATCH", path_of(schedule_id), **unknown),
    ):
        assert "edge, sensors; did you mean 'edge'?" in mistakes["provider"]


# Reading


async def test_the_list_is_by_name_in_pages_that_follow_by_cursor_and_by_link(admin, nightly):
    names = [f"s{n}" for n in range(5)]
    for name in reversed(names):
        await nightly(name)
    found, query = [], {"limit": "2"}
    while query:
        response = await admin.send("GET", SCHEDULES, params=query)
        page = await response.json()
        ScheduleList.model_validate(page)
        assert page["total"] == 5
        found += [schedule["name"] for schedule in page["schedules"]]
        query = dict(response.links["next"]["url"].query) if response.links else {}
        assert query.get("cursor") == page["next_cursor"]
    assert found == names


async def test_deleted_schedules_of_one_name_are_all_on_the_pages(admin, nightly):
    ids = set()
    for _ in range(5):
        ids.add((await nightly())["id"])
        await admin.ask("DELETE", path_of(await id_of(admin)))
    found, query = [], {}
    while query.get("cursor") != "end":
        page = await admin.read(SCHEDULES, status="deleted", limit=2, **query)
        found += [schedule["id"] for schedule in page["schedules"]]
        query = {"cursor": page["next_cursor"] or "end"}
    assert (len(found), set(found)) == (5, ids)
    assert (await admin.read(SCHEDULES))["total"] == 0


@on_one_database
async def test_the_list_is_narrowed_by_status_and_by_a_whole_tag(admin, nightly):
    await nightly("a", tags=["vpn", "night_shift"])
    stopped = await nightly("b", tags=["vpn2"])
    await act(admin, stopped["id"], "disable")

    async def names(**query: str) -> list[str]:
        return [
            schedule["name"] for schedule in (await admin.read(SCHEDULES, **query))["schedules"]
        ]

    assert await names() == ["a", "b"]
    assert await names(status="ACTIVE") == ["a"]
    assert await names(status="disabled", tag="vpn2") == ["b"]
    assert await names(tag="vpn") == ["a"]
    for absent in ("night", "nightXshift", "%", "|", "VPN3"):
        assert await names(tag=absent) == []


@pytest.mark.parametrize(
    ("path", "query"),
    [
        (SCHEDULES, "status=gone"),
        (SCHEDULES, "tag="),
        (SCHEDULES, "tag=%00"),
        (SCHEDULES, "limit=201"),
        (SCHEDULES, "cursor=x"),
        (SCHEDULES, f"cursor={PageCursor(RUNS, '0').encode()}"),
        (SCHEDULES, "names=nightly"),
        (UPCOMING, "within=soon"),
        (UPCOMING, "within=P367D"),
        (UPCOMING, "limit=0"),
        (f"{SCHEDULES}/x/runs", "state=done"),
        (f"{SCHEDULES}/x/runs", f"cursor={CompositeCursor(LIST, ('a', 'b')).encode()}"),
    ],
)
@on_one_database
async def test_a_wrong_query_is_a_problem_of_the_callers(admin, path, query):
    document = await problem(await admin.send("GET", f"{path}?{query}"), 422)
    assert len(document["errors"]) == 1


async def test_an_id_that_leads_to_nothing_is_not_found(admin):
    for schedule_id in NOWHERE:
        path = path_of(schedule_id)
        for method in ("GET", "DELETE"):
            await problem(await admin.send(method, path), 404)
        assert await refused(admin, "PATCH", path, 404, query="more")
        for action in ("run", "enable", "disable"):
            await problem(await admin.send("POST", f"{path}/{action}"), 404)
        await problem(await admin.send("GET", f"{path}/runs"), 404)


@on_one_database
async def test_schedules_are_for_admins_alone(api, analyst, nightly):
    schedule_id = (await nightly())["id"]
    for method, path in (
        ("POST", SCHEDULES),
        ("GET", UPCOMING),
        ("DELETE", path_of(schedule_id)),
        ("POST", path_of(schedule_id, "/run")),
    ):
        await problem(await analyst.send(method, path), 403)
        await problem(await api.client.request(method, path), 401)


# Changing


async def test_what_is_given_is_changed_and_the_rest_stays(admin, nightly):
    created = await nightly(tags=["vpn"], jitter="PT5M")
    path = path_of(created["id"])
    changed = await admin.ask("PATCH", path, json={"query": "new admins", "timeout": "5m"})
    rest = {"query": "new admins", "timeout": "PT5M", "revision": 2}
    assert changed == created | rest
    assert await admin.read(path) == changed


@on_one_database
async def test_a_null_returns_to_the_default(admin, nightly):
    created = await nightly(tags=["vpn"], jitter="PT5M", timezone="Europe/Berlin", timeout="5m")
    path = path_of(created["id"])
    nulls = dict.fromkeys(["tags", "jitter", "timezone", "timeout"])
    changed = await admin.ask("PATCH", path, json=nulls)
    assert [changed[name] for name in nulls] == [[], None, "UTC", "PT10M"]
    assert changed["next_run_at"] == "2026-11-22T02:00:00.000Z"
    mistakes = await wrong(admin, "PATCH", path, query=None)
    assert "missing" in mistakes["query"]


async def test_an_interval_takes_the_place_of_a_cron_expression_and_the_other_way_round(
    admin, nightly
):
    path = path_of((await nightly())["id"])
    changed = await admin.ask("PATCH", path, json={"interval": "PT1H"})
    assert (changed["cron"], changed["interval"]) == (None, "PT1H")
    assert changed["next_run_at"] == "2026-11-21T13:00:00.000Z"
    changed = await admin.ask("PATCH", path, json={"cron": "@hourly"})
    assert (changed["cron"], changed["interval"]) == ("@hourly", None)


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({}, ""),
        ({"name": "other"}, "name"),
        ({"enabled": False}, "enabled"),
        ({"cron": "x"}, "cron"),
        ({"cron": None}, "interval"),
        ({"cron": "@hourly", "interval": "1h"}, "interval"),
        ({"jitter": "P1D"}, "jitter"),
    ],
)
@on_one_database
async def test_a_wrong_change_changes_nothing(admin, nightly, body, path):
    created = await nightly()
    mistakes = await wrong(admin, "PATCH", path_of(created["id"]), **body)
    assert list(mistakes) == [path]
    assert await admin.read(path_of(created["id"])) == created


@on_one_database
async def test_a_change_of_nothing_is_no_change(admin, nightly, clock):
    created = await nightly()
    before = await admin.audited()
    clock.advance(minutes=1)
    same = {"timeout": "600s", "persona": "Analyst", "tags": []}
    assert await admin.ask("PATCH", path_of(created["id"]), json=same) == created
    assert await admin.audited() == before


@on_one_database
async def test_a_change_says_in_the_audit_log_which_members_were_given(admin, nightly):
    created = await nightly()
    await admin.ask("PATCH", path_of(created["id"]), json={"timeout": "5m", "jitter": None})
    changed, made = await admin.audited()
    assert changed["details"] == {"members": ["jitter", "timeout"]}
    assert made["details"] == {"name": "nightly", "members": ["cron", "query"]}


@on_one_database
async def test_whether_it_is_enabled_stays(admin, nightly):
    path = path_of((await nightly())["id"])
    await admin.ask("POST", f"{path}/disable")
    changed = await admin.ask("PATCH", path, json={"interval": "PT1H"})
    assert (changed["status"], changed["disabled_reason"]) == ("disabled", "manual")
    assert (changed["next_run_at"], changed["upcoming"]) == (None, [])


# What plugins.toml names


async def test_what_the_file_names_is_changed_there_alone(admin, apply_file):
    await apply_file(nightly={})
    path = path_of(await id_of(admin))
    assert (await admin.read(path))["managed_by"] == "file"
    for method, body in (("PATCH", {"query": "more"}), ("DELETE", None)):
        document = await problem(await admin.send(method, path, json=body), 409)
        assert document["type"] == "/problems/managed-by-file"


async def test_what_the_file_names_can_be_disabled_enabled_and_run(admin, apply_file):
    await apply_file(nightly={})
    schedule_id = await id_of(admin)
    assert (await act(admin, schedule_id, "disable"))["disabled_reason"] == "manual"
    await apply_file(nightly={})
    assert (await admin.read(path_of(schedule_id)))["status"] == "disabled"
    assert (await act(admin, schedule_id, "enable"))["status"] == "active"
    assert (await act(admin, schedule_id, "run", 202))["state"] == "running"


async def test_what_the_file_names_no_more_cannot_be_enabled_but_deleted(admin, apply_file):
    await apply_file(nightly={})
    schedule_id = await id_of(admin)
    await apply_file()
    assert (await admin.read(path_of(schedule_id)))["disabled_reason"] == "removed-from-file"
    words = await refused(admin, "POST", path_of(schedule_id, "/enable"))
    assert "plugins.toml no longer contains the schedule" in words
    assert (await admin.ask("DELETE", path_of(schedule_id)))["status"] == "deleted"


# Deleting


async def test_a_deleted_schedule_can_be_read_and_nothing_else(admin, nightly):
    path = path_of((await nightly())["id"])
    await admin.ask("POST", f"{path}/run", 202)
    deleted = await admin.ask("DELETE", path)
    assert (deleted["status"], deleted["next_run_at"], deleted["upcoming"]) == ("deleted", None, [])
    audited = await admin.audited()
    assert await admin.ask("DELETE", path) == deleted
    assert await admin.read(path) == deleted
    assert (await admin.read(f"{path}/runs"))["total"] == 1
    assert "create a new one" in await refused(admin, "PATCH", path, query="more")
    for action in ("run", "enable", "disable"):
        assert "create a new one" in await refused(admin, "POST", f"{path}/{action}")
    assert await admin.audited() == audited


# Running


async def test_a_run_by_hand_is_answered_and_is_a_session_of_the_schedule(admin, analyst, nightly):
    schedule = await nightly(persona="executive", provider="edge")
    run = await act(admin, schedule["id"], "run", 202)
    ScheduleRun.model_validate(run)
    assert (run["schedule_id"], run["trigger"], run["state"]) == (
        schedule["id"],
        "manual",
        "running",
    )
    assert (run["fire_at"], run["started_at"], run["ended_at"]) == (NOW, NOW, None)
    found = await analyst.read("/api/v1/investigations", schedule=schedule["id"])
    [session] = found["investigations"]
    assert (session["id"], session["schedule_id"]) == (run["session_id"], schedule["id"])
    assert (session["query"], session["persona"], session["provider"]) == (
        "new logins",
        "executive",
        "edge",
    )
    after = await admin.read(path_of(schedule["id"]))
    assert (after["last_status"], after["last_run_at"]) == ("running", NOW)
    assert after["next_run_at"] == schedule["next_run_at"]


async def test_a_schedule_that_skips_is_not_run_while_it_is_under_way(admin, nightly, office):
    schedule_id = (await nightly())["id"]
    await act(admin, schedule_id, "run", 202)
    words = await refused(admin, "POST", path_of(schedule_id, "/run"))
    assert "in progress" in words
    await office.complete()
    await act(admin, schedule_id, "run", 202)


async def test_a_schedule_that_queues_runs_next_what_was_asked_for_meanwhile(
    admin, nightly, office
):
    schedule_id = (await nightly(overlap="queue"))["id"]
    first = await act(admin, schedule_id, "run", 202)
    second = await act(admin, schedule_id, "run", 202)
    assert (first["state"], second["state"]) == ("running", "waiting")
    assert (second["session_id"], second["started_at"]) == (None, None)
    await office.complete()
    newest, oldest = (await admin.read(path_of(schedule_id, "/runs")))["runs"]
    assert [(item["id"], item["state"]) for item in (newest, oldest)] == [
        (second["id"], "running"),
        (first["id"], "completed"),
    ]


@on_one_database
async def test_a_disabled_schedule_is_run_when_asked_for_and_stays_disabled(admin, nightly):
    schedule_id = (await nightly())["id"]
    await act(admin, schedule_id, "disable")
    assert (await act(admin, schedule_id, "run", 202))["state"] == "running"
    assert (await admin.read(path_of(schedule_id)))["status"] == "disabled"


@on_one_database
async def test_a_run_with_a_key_takes_effect_once(admin, nightly):
    path = path_of((await nightly(overlap="queue"))["id"])
    first = await admin.ask("POST", f"{path}/run", 202, headers=ONCE)
    assert await admin.ask("POST", f"{path}/run", 202, headers=ONCE) == first
    assert (await admin.read(f"{path}/runs"))["total"] == 1


@on_one_database
async def test_where_there_is_no_investigator_nothing_is_run(api, admin, nightly):
    path = path_of((await nightly())["id"])
    services = replace(api.services, no_investigator="plugins.toml disables it")
    async with TestClient(TestServer(make_app(services))) as client:
        response = await client.post(f"{path}/run", headers=admin.headers)
        assert "plugins.toml disables it" in (await problem(response, 503))["detail"]
    assert (await admin.read(f"{path}/runs"))["total"] == 0


# Enabling and disabling


async def test_it_is_disabled_and_enabled_once_however_often_that_is_asked(admin, nightly, clock):
    schedule = await nightly(cron=None, interval="1h")
    disabled = await act(admin, schedule["id"], "disable")
    assert (disabled["status"], disabled["next_run_at"]) == ("disabled", None)
    assert await act(admin, schedule["id"], "disable") == disabled
    clock.advance(hours=3)
    enabled = await act(admin, schedule["id"], "enable")
    assert (enabled["status"], enabled["disabled_reason"]) == ("active", None)
    assert enabled["next_run_at"] == "2026-11-21T16:00:00.000Z"
    assert await act(admin, schedule["id"], "enable") == enabled
    actions = [entry["action"] for entry in await admin.audited()]
    assert actions == ["schedule.enable", "schedule.disable", "schedule.create"]


async def test_enabling_forgets_the_failures_that_disabled_it(admin, office):
    schedule_id = (await office.make(failure_limit=2)).id
    await office.run_and_fail(2)
    failed = await admin.read(path_of(schedule_id))
    assert (failed["disabled_reason"], failed["consecutive_failures"]) == (
        "consecutive_failures",
        2,
    )
    assert (failed["last_status"], "404" in failed["last_error"]) == ("failed", True)
    enabled = await act(admin, schedule_id, "enable")
    assert (enabled["status"], enabled["consecutive_failures"]) == ("active", 0)
    entry = (await admin.audited())[0]
    assert entry["details"] == {"reason": "consecutive_failures"}


# What became of runs, and what is to come


async def test_runs_are_listed_from_the_newest_in_pages(admin, office):
    schedule_id = (await office.make()).id
    await office.run_and_fail(3)
    await office.fire(hours=1)
    await office.complete()
    await office.fire(days=1)
    path, found, query = path_of(schedule_id, "/runs"), [], {}
    while query.get("cursor") != "end":
        page = await admin.read(path, limit=2, **query)
        RunList.model_validate(page)
        assert (page["total"], page["total_relation"]) == (6, "eq")
        found += page["runs"]
        query = {"cursor": page["next_cursor"] or "end"}
    states = ["running", "missed", "completed", "failed", "failed", "failed"]
    assert [item["state"] for item in found] == states
    assert (found[1]["count"], found[1]["until"][11:16]) == (23, "15:00")
    assert (found[3]["cause"], "404" in found[3]["reason"]) == ("investigation", True)
    assert (await admin.read(path, state="FAILED"))["total"] == 3


async def test_what_is_to_come_of_all_schedules_is_in_order(admin, nightly):
    ids = {
        name: (await nightly(name, cron=None, interval=interval))["id"]
        for name, interval in (("a", "40m"), ("b", "1h"), ("c", "2d"))
    }
    stopped = await nightly("d", cron=None, interval="10m")
    await act(admin, stopped["id"], "disable")
    answer = await admin.read(UPCOMING, within="PT2H")
    UpcomingList.model_validate(answer)
    found = [(item["schedule_name"], item["due_at"][11:16]) for item in answer["upcoming"]]
    assert found[:3] == [("a", "12:40"), ("b", "13:00"), ("a", "13:20")]
    assert sorted(found[3:]) == [("a", "14:00"), ("b", "14:00")]
    assert all(ids[item["schedule_name"]] == item["schedule_id"] for item in answer["upcoming"])
    assert answer["until"] == "2026-11-21T14:00:00.000Z"
    assert len((await admin.read(UPCOMING, limit=3))["upcoming"]) == 3
    names = {item["schedule_name"] for item in (await admin.read(UPCOMING, limit=200))["upcoming"]}
    assert names == {"a", "b"}


@on_one_database
async def test_where_more_is_to_come_than_is_shown_the_answer_says_up_to_when(admin, nightly):
    await nightly(cron=None, interval="1h")
    answer = await admin.read(UPCOMING, limit=3)
    assert (answer["truncated"], answer["until"]) == (True, "2026-11-21T15:00:00.000Z")
    assert not (await admin.read(UPCOMING, within="PT2H", limit=3))["truncated"]

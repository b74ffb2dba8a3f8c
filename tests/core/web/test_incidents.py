"""Reading incidents over HTTP."""

from __future__ import annotations

from datetime import timedelta

import pytest

from api_server import URL, problem
from incident_rows import NOW, add_incidents, change_incident
from tocsin.web.schemas.incidents import IncidentItem, IncidentList, IncidentTrend

PATH = "/api/v1/incidents"


@pytest.fixture
async def headers(api) -> dict[str, str]:
    return await api.reader()


@pytest.fixture
def listed(api, headers):
    async def fetch(path: str = PATH, **query) -> dict:
        async with api.client.get(path, params=query, headers=headers) as response:
            assert response.status == 200, await response.text()
            answer = await response.json()
            IncidentList.model_validate(answer)
            return answer

    return fetch


def numbers(answer: dict) -> list[int]:
    return [incident["number"] for incident in answer["incidents"]]


async def test_one_incident(api, headers):
    await api.services.database.write(add_incidents, entities=[("ip", "192.0.2.1")], alerts=2)
    response = await api.client.get(f"{PATH}/1", headers=headers)
    assert response.status == 200
    answer = await response.json()
    IncidentItem.model_validate(answer)
    assert answer["url"] == f"{URL}/incidents/1"
    assert answer["source_url"] == "https://siem.example/1"
    assert (answer["alert_count"], answer["entities"][0]["kind"]) == (2, "ip")


@pytest.mark.parametrize("number", ["2", "0", "-1", "1.0", "x", "٣", "1" * 30, "%00", "01"])
async def test_a_number_that_is_not_there_or_none_is_not_found(api, headers, number):
    await api.services.database.write(add_incidents)
    await problem(await api.client.get(f"{PATH}/{number}", headers=headers), 404)


async def test_the_roles_of_entities_are_told_where_the_siem_tells_them(api, listed):
    entities = [("ip", "192.0.2.1", "source"), ("ip", "192.0.2.2", "both"), ("user", "ana")]
    await api.services.database.write(add_incidents, entities=entities)
    [incident] = (await listed())["incidents"]
    shown = [(entity["value"], entity["role"]) for entity in incident["entities"]]
    assert shown == [("192.0.2.1", "source"), ("192.0.2.2", "both"), ("ana", None)]


async def test_an_empty_list(listed):
    answer = await listed()
    assert answer == {
        "incidents": [],
        "total": 0,
        "total_relation": "eq",
        "next_cursor": None,
        "resume_cursor": answer["resume_cursor"],
    }


async def test_pages_follow_by_cursor(api, listed):
    await api.services.database.write(add_incidents, 5)
    first = await listed(limit=2)
    second = await listed(limit=2, cursor=first["next_cursor"])
    third = await listed(limit=2, cursor=second["next_cursor"])
    assert [numbers(page) for page in (first, second, third)] == [[5, 4], [3, 2], [1]]
    assert [page["total"] for page in (first, second, third)] == [5, 5, 5]
    assert third["next_cursor"] is None


async def test_pages_follow_by_link_with_the_same_filters(api, headers):
    await api.services.database.write(add_incidents, 5, severity="Low")
    await api.services.database.write(add_incidents, 5)
    url, seen = f"{URL}{PATH}?limit=2&severity=low", []
    while url:
        response = await api.client.get(url.removeprefix(URL), headers=headers)
        seen += numbers(await response.json())
        url = str(response.links["next"]["url"]) if response.links else ""
        assert not url or url.startswith(URL)
    assert seen == [5, 4, 3, 2, 1]


async def test_changes_follow_by_link_in_their_order(api, headers):
    await api.services.database.write(add_incidents, 5)
    path, seen = f"{PATH}?limit=2&changed_after=", []
    while path:
        response = await api.client.get(path, headers=headers)
        seen += numbers(await response.json())
        path = str(response.links["next"]["url"]).removeprefix(URL) if response.links else ""
    assert seen == [1, 2, 3, 4, 5]


async def test_polling_by_resume_cursor_brings_each_change_once(api, listed):
    write = api.services.database.write
    await write(add_incidents, 2)
    first = await listed(changed_after="")
    assert numbers(first) == [1, 2]
    again = await listed(changed_after=first["resume_cursor"])
    assert (again["incidents"], again["resume_cursor"]) == ([], first["resume_cursor"])
    await write(change_incident, 1, now=NOW, status="Closed")
    third = await listed(changed_after=again["resume_cursor"])
    assert [(i["number"], i["status"]) for i in third["incidents"]] == [(1, "Closed")]


async def test_an_ordinary_list_says_where_to_resume(api, listed):
    await api.services.database.write(add_incidents, 3)
    answer = await listed(limit=1)
    await api.services.database.write(add_incidents)
    assert numbers(await listed(changed_after=answer["resume_cursor"])) == [4]


async def test_what_changes_while_pages_are_turned_comes_after_the_last_pages_cursor(api, listed):
    await api.services.database.write(add_incidents, 4)
    first = await listed(limit=2)
    await api.services.database.write(change_incident, 1, now=NOW)
    second = await listed(limit=2, cursor=first["next_cursor"])
    assert numbers(second) == [2]
    assert numbers(await listed(changed_after=second["resume_cursor"])) == [1]


async def test_words_are_compared_without_regard_to_case(api, listed):
    await api.services.database.write(add_incidents, severity="Critical", status="Active")
    await api.services.database.write(add_incidents)
    assert numbers(await listed(severity="cRITICAL")) == [1]
    assert numbers(await listed(status="ACTIVE", severity="critical")) == [1]


async def test_a_timespan_reaches_back_from_now(api, listed, clock):
    await api.services.database.write(add_incidents, now=clock.now() - timedelta(minutes=16))
    await api.services.database.write(add_incidents, now=clock.now() - timedelta(minutes=14))
    assert numbers(await listed(timespan="PT15M")) == [2]
    assert numbers(await listed(timespan="P1D")) == [2, 1]


async def test_every_wrong_parameter_is_named_at_once(api, headers):
    query = "severity=bad&status=&limit=0&timespan=P1Y&cursor=x&changed_after=x&colour=red"
    response = await api.client.get(f"{PATH}?{query}", headers=headers)
    document = await problem(response, 422)
    errors = {error["path"]: error["detail"] for error in document["errors"]}
    assert sorted(errors) == sorted(part.partition("=")[0] for part in query.split("&"))
    assert "Informational, Low, Medium, High, Critical" in errors["severity"]
    assert "New, Active, Closed" in errors["status"]
    assert document["type"] == "/problems/invalid-request"


WRONG = {
    "too many": "limit=201",
    "no number": "limit=ten",
    "twice": "limit=1&limit=2",
    "empty cursor": "cursor=",
    "made up": "cursor=ZDEw1",
    "not base64": "cursor=%F0%9F%98%80",
    "very long": "cursor=" + "a" * 5000,
    "too far back": "timespan=P3651D",
    "negative": "timespan=-P1D",
    "none at all": "timespan=PT0S",
    "two starts": "cursor=YTEw&changed_after=",
    "unknown": "Limit=1",
    "surrogates": "severity=%ED%B3%BF",
    "null": "severity=%00",
}


@pytest.mark.parametrize("query", WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_wrong_query_is_a_problem_of_the_callers(api, headers, query):
    document = await problem(await api.client.get(f"{PATH}?{query}", headers=headers), 422)
    assert len(document["errors"]) == 1


async def test_a_next_cursor_is_not_taken_for_a_resume_cursor(api, listed, headers):
    await api.services.database.write(add_incidents, 2)
    cursor = (await listed(limit=1))["next_cursor"]
    response = await api.client.get(f"{PATH}?changed_after={cursor}", headers=headers)
    assert "resume_cursor" in (await problem(response, 422))["errors"][0]["detail"]


async def test_a_trend_is_counted_once_for_all_callers(api, clock):
    async def total(hours: int) -> int:
        async with api.client.get(
            f"{PATH}/trend", params={"hours": hours}, headers=await api.reader()
        ) as response:
            answer = IncidentTrend.model_validate(await response.json())
        assert len(answer.hours) == hours
        return sum(sum(hour.counts.values()) for hour in answer.hours)

    assert await total(2) == 0
    await api.services.database.write(add_incidents, 3, now=clock.now())
    assert (await total(2), await total(3)) == (0, 3)
    api.services.shared_results.expire()
    assert await total(2) == 3

"""A form that is sent twice, by a double click or a page that is loaded anew, acts once."""

from __future__ import annotations

import re

import pytest

from api_callers import Admin

KEYS = "/admin/api-keys"
_FIELD = re.compile(r'<input type="hidden" name="(form_token|once)" value="([^"]+)">')

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


async def form_of(person, page: str) -> dict[str, str]:
    """Return what each form of a page brings along."""
    return dict(_FIELD.findall(await person.html(page)))


async def keys(api) -> list[str]:
    listed = await Admin(api, await api.admin()).ask("GET", "/api/admin/api-keys")
    return [each["name"] for each in listed["api_keys"]]


async def test_one_key_is_made_and_the_second_answer_says_where_its_value_was(api, person):
    form = await form_of(person, KEYS) | {"name": "soar", "scopes": "incidents:read"}
    assert (await person.post(KEYS, **form)).status == 200
    again = await person.post(KEYS, **form)
    assert again.status == 409
    assert "returns only once" in await again.text()
    assert await keys(api) == ["soar"]


async def test_one_investigation_is_begun_and_both_answers_lead_to_it(person):
    form = await form_of(person, "/investigations") | {"query": "what of 203.0.113.9?"}
    first, again = [await person.post("/investigations/start", **form) for _ in range(2)]
    assert first.status == again.status == 303
    assert first.headers["Location"] == again.headers["Location"]


async def test_the_same_form_of_a_page_that_was_loaded_anew_acts_again(api, person):
    for _ in range(2):
        form = await form_of(person, KEYS) | {"name": "soar", "scopes": "incidents:read"}
        assert (await person.post(KEYS, **form)).status == 200
    assert await keys(api) == ["soar", "soar"]


async def test_what_was_corrected_on_the_same_page_is_another_form(api, person):
    form = await form_of(person, KEYS) | {"name": "soar"}
    assert (await person.post(KEYS, **form)).status == 422
    form |= {"scopes": "incidents:read"}
    assert (await person.post(KEYS, **form)).status == 200
    assert (await person.post(KEYS, **form | {"name": "other"})).status == 200
    assert sorted(await keys(api)) == ["other", "soar"]

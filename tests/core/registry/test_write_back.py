"""What a provider may be told to write back."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from tocsin import IncidentStatus, Provider
from tocsin.registry.parser import find_unsupported_write_back
from tocsin.validation import explain_errors


class Able(Provider):
    async def check(self):
        raise NotImplementedError

    async def read(self, stream, position, until):
        return
        yield

    async def comment(self, external_id, text, key): ...

    async def set_status(self, external_id, status): ...


class Comments(Able):
    set_status = Provider.set_status


class Statuses(Able):
    comment = Provider.comment


def wrong(kind, **given) -> list[str]:
    settings = kind.Settings(plugin="acme", **given)
    return [": ".join(problem) for problem in find_unsupported_write_back(kind, settings)]


def test_a_status_is_set_beside_a_comment():
    assert wrong(Able, write_back=True, write_back_status="aCTIVE") == []
    assert wrong(Able, write_back=True) == wrong(Able) == []


def test_a_status_without_comments_is_a_problem():
    [problem] = wrong(Able, write_back_status="Active")
    assert problem == (
        "write_back_status: found 'Active', but `write_back` is off: "
        "set `write_back = true` as well, or remove this setting"
    )


def test_who_can_write_no_comments_can_set_a_status_alone():
    assert wrong(Statuses, write_back_status="Active") == []
    [problem] = wrong(Statuses, write_back=True)
    assert problem == "write_back: 'acme' cannot write comments: remove this setting"


def test_who_can_only_comment_sets_no_status():
    assert wrong(Comments, write_back=True) == []
    [problem] = wrong(Comments, write_back=True, write_back_status="Active")
    assert problem == "write_back_status: 'acme' cannot set a status: remove this setting"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            "Closed",
            "found 'Closed'; use 'Active'; Tocsin does not close incidents in the SIEM "
            "automatically",
        ),
        (
            "new",
            "found 'new'; use 'Active', or omit the setting: the incident is already New",
        ),
        ("Done", "found 'Done'; use one of: New, Active, Closed"),
        (3, "found 3; use one of: 'New', 'Active' or 'Closed'"),
    ],
)
def test_no_other_status_can_be_set(given, words):
    with pytest.raises(ValidationError) as raised:
        Able.Settings(plugin="acme", write_back_status=given)
    assert [error.words for error in explain_errors(raised.value, Able.Settings)] == [words]


@pytest.mark.parametrize("name", ["tlp", "pap"])
def test_what_is_no_word_is_no_marking(name):
    with pytest.raises(ValidationError):
        Able.Settings(plugin="acme", **{name: 3})


def test_nothing_is_set_by_default():
    assert Able.Settings(plugin="acme").write_back_status is None
    chosen = Able.Settings(plugin="acme", write_back_status=IncidentStatus.ACTIVE)
    assert chosen.write_back_status is IncidentStatus.ACTIVE

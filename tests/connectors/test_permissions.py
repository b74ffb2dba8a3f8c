"""Detection of missing permissions with trial requests."""

from __future__ import annotations

import pytest

from tocsin import CredentialsRefused, TryLater
from tocsin_connectors.siem.permissions import find_refused


def answering(error=None):
    async def answer():
        if error is not None:
            raise error

    return answer


async def test_what_is_forbidden_is_named():
    forbidden = answering(CredentialsRefused("forbidden", status=403))
    assert await find_refused({"read": answering(), "write": forbidden}) == ["write"]


@pytest.mark.parametrize("error", [CredentialsRefused("unknown", status=401), TryLater("busy")])
async def test_whatever_else_is_wrong_is_not_taken_for_a_missing_right(error):
    with pytest.raises(type(error)):
        await find_refused({"read": answering(error)})

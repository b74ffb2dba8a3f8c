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


async def test_refused_requests_are_reported():
    forbidden = answering(CredentialsRefused("forbidden", status=403))
    assert await find_refused({"read": answering(), "write": forbidden}) == ["write"]


@pytest.mark.parametrize("error", [CredentialsRefused("unknown", status=401), TryLater("busy")])
async def test_other_errors_are_not_missing_permissions(error):
    with pytest.raises(type(error)):
        await find_refused({"read": answering(error)})

"""Grants from an OAuth 2.0 token endpoint.

https://www.rfc-editor.org/rfc/rfc6749#section-5
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from tocsin import Api, Broken, Clock, CredentialsRefused, Grant, Misconfigured, Refused


async def request_grant(api: Api, path: str, form: Mapping[str, str], clock: Clock) -> Grant:
    """Request a bearer token with a form, and return it with its expiry.

    Raises `CredentialsRefused` for every refusal, because servers refuse unknown clients with 400.
    """
    now = clock.now()
    try:
        answer = await api.request("POST", path, form=form)
    except Misconfigured:
        raise
    except Refused as refused:
        raise CredentialsRefused(
            str(refused), status=refused.status, response=refused.response
        ) from refused
    match answer.json:
        case {"access_token": str(token), "expires_in": int(seconds)} if token:
            return Grant(f"Bearer {token}", now + timedelta(seconds=seconds))
    raise Broken(f"POST {path} returned a response without `access_token` and `expires_in`")

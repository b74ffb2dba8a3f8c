"""The node's metrics, for Prometheus: by a token of their own or, without one, from here alone."""

from __future__ import annotations

import hmac
from ipaddress import ip_address

from aiohttp import hdrs, web

from tocsin.errors import CallerError, OperatorError
from tocsin.settings import Settings
from tocsin.web.context import RequestContext, Response
from tocsin.web.rate_limits import FORWARDED, UNKNOWN_ADDRESS

_PASSED_ON = (FORWARDED, hdrs.FORWARDED, hdrs.VIA, "X-Real-IP")
_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="tocsin"'}


async def get_metrics(call: RequestContext) -> Response:
    """Answer what the node counts and measures, in the text format of Prometheus.

    With `TOCSIN_METRICS_TOKEN` set, `Authorization: Bearer` must hold it (401); a failure counts as
    any failed authentication does (429). Without it, only callers on the same machine are answered,
    and those that come through a proxy are not (403).
    """
    if (token := call.services.metrics_token) is not None:
        await _require(token, call)
    elif not _is_local(call):
        raise CallerError(
            403,
            "Metrics are for callers on the same machine; for others, set TOCSIN_METRICS_TOKEN and "
            "send that as Authorization: Bearer.",
        )
    return Response(await call.services.metrics.expose())


async def _require(token: str, call: RequestContext) -> None:
    if not _bears(call.request, token):
        services = call.services
        await services.throttle.count_failure(services.addresses.of(call.request))
        words = "Send the token of TOCSIN_METRICS_TOKEN as Authorization: Bearer."
        raise CallerError(401, words, headers=_CHALLENGE)


def _bears(request: web.Request, token: str) -> bool:
    scheme, _, sent = request.headers.get(hdrs.AUTHORIZATION, "").partition(" ")
    is_same = hmac.compare_digest(sent.strip().encode(errors="surrogateescape"), token.encode())
    return is_same and scheme.casefold() == "bearer"


def _is_local(call: RequestContext) -> bool:
    """Return whether the caller is on this machine; not a proxy that passes on what others ask."""
    if any(name in call.request.headers for name in _PASSED_ON):
        return False
    address = call.services.addresses.of(call.request)
    return address != UNKNOWN_ADDRESS and ip_address(address).is_loopback


def read_token(settings: Settings) -> str | None:
    """Return the token that admits to the metrics, None where none is set; OperatorError."""
    if settings.metrics_token is not None:
        return settings.metrics_token.get_secret_value()
    if (path := settings.metrics_token_file) is None:
        return None
    try:
        token = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise OperatorError(f"TOCSIN_METRICS_TOKEN_FILE ({path}): {error}") from error
    if not token:
        raise OperatorError(f"TOCSIN_METRICS_TOKEN_FILE ({path}): the file is empty")
    return token

"""Conditional requests: what a caller holds already is not sent again (RFC 9110 section 13)."""

from __future__ import annotations

import re
from hashlib import blake2b

from aiohttp import hdrs, web

_TAG = re.compile(r'(?:W/)?("[^"]*")')


def apply_etag(request: web.Request, response: web.Response) -> web.Response:
    """Return the response under a tag that tells its body, or 304 where the caller holds that."""
    assert isinstance(response.body, bytes)  # noqa: S101 - what every handler here answers
    tag = f'"{blake2b(response.body, digest_size=16).hexdigest()}"'
    response.headers[hdrs.ETAG] = tag
    response.headers.setdefault(hdrs.CACHE_CONTROL, "private, no-cache")
    if not _is_cached(request, tag):
        return response
    headers = response.headers.copy()
    for name in (hdrs.CONTENT_TYPE, hdrs.CONTENT_LENGTH):
        headers.popall(name, None)
    return web.Response(status=304, headers=headers)


def _is_cached(request: web.Request, tag: str) -> bool:
    held = ",".join(request.headers.getall(hdrs.IF_NONE_MATCH, []))
    return held.strip() == "*" or tag in _TAG.findall(held)

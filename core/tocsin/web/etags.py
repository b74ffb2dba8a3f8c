"""Entity tags of responses (RFC 9110 section 8.8.3), and conditional requests."""

from __future__ import annotations

import re
from hashlib import blake2b

from aiohttp import hdrs, web

CACHE_CONTROL = "private, no-cache"
_ETAG = re.compile(r'(W/)?("[^"]*")')
"""A tag, preceded by `W/` if it is weak."""


class ResponseTags:
    """Makes entity tags from the versions of the stored data that responses show.

    Responses also depend on the base URL, the version of the documents and the database, so tags
    differ between those as well.
    """

    def __init__(self, *parts: object) -> None:
        given = "\n".join(map(str, parts)).encode()
        self._salt = blake2b(given, digest_size=8).hexdigest()

    def make(self, version: str) -> str:
        """Return the tag of a version."""
        return f'"{version}-{self._salt}"'


def hash_content(content: bytes) -> str:
    """Return a tag for a response without a version, computed from its content."""
    return f'"{blake2b(content, digest_size=16).hexdigest()}"'


def is_held(request: web.Request, tag: str) -> bool:
    """Return whether the caller already has this version (RFC 9110 section 13.1.2)."""
    fields = request.headers.getall(hdrs.IF_NONE_MATCH, None)
    if fields is None:
        return False
    held = ",".join(fields)
    return held.strip() == "*" or any(found == tag for _, found in _ETAG.findall(held))


def is_expected(request: web.Request, tag: str) -> bool:
    """Return whether the request may be applied to this version (RFC 9110 section 13.1.1)."""
    fields = request.headers.getall(hdrs.IF_MATCH, None)
    if fields is None:
        return True
    expected = ",".join(fields)
    return expected.strip() == "*" or ("", tag) in _ETAG.findall(expected)


def apply_etag(request: web.Request, response: web.Response, tag: str) -> web.Response:
    """Return the response with its tag, or a 304 response if the caller already has it."""
    response.headers[hdrs.ETAG] = tag
    response.headers.setdefault(hdrs.CACHE_CONTROL, CACHE_CONTROL)
    if not is_held(request, tag):
        return response
    headers = response.headers.copy()
    for name in (hdrs.CONTENT_TYPE, hdrs.CONTENT_LENGTH):
        headers.popall(name, None)
    return web.Response(status=304, headers=headers)

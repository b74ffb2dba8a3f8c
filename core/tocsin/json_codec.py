"""JSON decoding that tolerates split surrogate pairs."""

from __future__ import annotations

import json
import re
from typing import Any

import orjson

_ESCAPED_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_SURROGATE = re.compile("[\ud800-\udfff]")


def parse_json(content: bytes) -> Any:
    """Return what `content` says; ValueError where it is not JSON.

    Half of a character in UTF-16, as programs write it that cut text, becomes U+FFFD: by RFC 8259
    section 8.2 it is JSON, but it is no text that can be stored.
    """
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        if not _ESCAPED_SURROGATE.search(content):
            raise
    try:
        text = json.dumps(json.loads(content), ensure_ascii=False)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error
    return orjson.loads(_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text))

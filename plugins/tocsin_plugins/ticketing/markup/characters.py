"""Characters that trackers refuse."""

from __future__ import annotations

import re

from tocsin import Json

# PostgreSQL and XML refuse controls; Atlassian's renderer marks its own places with U+FFFC
_NOT_STORED = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufffc\ufffe\uffff]",
)
_REPLACEMENT = "\ufffd"


def replace_unprintable(value: Json) -> Json:
    """Return the value with U+FFFD in each text for what cannot be stored."""
    match value:
        case str():
            return _NOT_STORED.sub(_REPLACEMENT, value)
        case list():
            return [replace_unprintable(it) for it in value]
        case dict():
            return {name: replace_unprintable(it) for name, it in value.items()}
    return value

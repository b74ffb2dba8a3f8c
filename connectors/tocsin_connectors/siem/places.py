"""Taking values from places such as `device.hostname` out of records of any form."""

from __future__ import annotations

from typing import Any

from tocsin_connectors.siem.records import children, texts


def texts_at(record: dict[str, Any], place: str) -> list[str]:
    """Return the texts at a place such as `network.dns.questions.name`, in lists as well."""
    first, _, rest = place.partition(".")
    if not rest:
        return texts(record, first)
    return [value for it in children(record, first) for value in texts_at(it, rest)]

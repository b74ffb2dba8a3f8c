"""Events as CloudEvents 1.0, in the HTTP protocol binding 1.0.2 and the JSON event format."""

from __future__ import annotations

from urllib.parse import quote

import orjson

from tocsin import Event, Misconfigured
from tocsin.clock import isoformat

# Section 3.1.3.2: of printable ASCII, space, double quote and percent are encoded.
_PLAIN = "".join(map(chr, range(0x21, 0x7F))).replace('"', "").replace("%", "")


def to_binary(event: Event, source: str, body: bytes) -> tuple[dict[str, str], bytes]:
    """Return the headers and body for `event` in binary content mode (section 3.1)."""
    attributes = _attributes(event, source)
    headers = {f"ce-{name}": quote(value, safe=_PLAIN) for name, value in attributes.items()}
    return {"content-type": "application/json", **headers}, body


def to_structured(event: Event, source: str, body: bytes) -> tuple[dict[str, str], bytes]:
    """Return the headers and body for `event` in structured content mode (section 3.2).

    Raises `Misconfigured` if `body`, which becomes the `data` member, is not JSON.
    """
    try:
        orjson.loads(body)
    except orjson.JSONDecodeError:
        raise Misconfigured(
            "cloudevents = 'structured' requires a template that renders JSON"
        ) from None
    message = {
        **_attributes(event, source),
        "datacontenttype": "application/json",
        "data": orjson.Fragment(body),
    }
    return {"content-type": "application/cloudevents+json"}, orjson.dumps(message)


def _attributes(event: Event, source: str) -> dict[str, str]:
    return {
        "specversion": "1.0",
        "id": event.id,
        "source": source,
        "type": f"tocsin.{event.event_type}",
        "time": isoformat(event.timestamp),
        "subject": event.subject,
    }

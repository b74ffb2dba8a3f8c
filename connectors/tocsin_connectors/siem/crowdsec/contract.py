"""Fields of CrowdSec alerts that the mapping needs.

https://crowdsecurity.github.io/api_doc/lapi/
"""

from __future__ import annotations

from types import MappingProxyType

from tocsin import RecordContract

_TEXTS = (
    *("message", "machine_id", "source.scope", "source.value", "source.ip"),
    *("source.as_name", "source.cn"),
    *("decisions.type", "decisions.duration", "decisions.origin"),
    *("events.meta.key", "events.meta.value"),
)
CONTRACT = RecordContract(
    required={
        "id": "number",
        "created_at": "string",
        "start_at": "string",
        "scenario": "string",
    },
    optional={
        **dict.fromkeys(_TEXTS, "string"),
        "simulated": "boolean",
        "labels": "string | string[]",
    },
)
CONTRACTS = MappingProxyType({"changed": CONTRACT})
"""By kind of record."""

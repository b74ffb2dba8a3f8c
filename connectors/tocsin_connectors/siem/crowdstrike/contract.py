"""Fields of Falcon alerts that the mapping needs.

https://developer.crowdstrike.com/api-reference/collections/alerts/
"""

from __future__ import annotations

from types import MappingProxyType

from tocsin import RecordContract
from tocsin_connectors.siem.crowdstrike.mapping import ENTITY_FIELDS

_TIMES = (
    *("signal_start_timestamp", "first_timestamp", "start_time", "timestamp"),
    "created_timestamp",
)
CONTRACT = RecordContract(
    required={
        "composite_id": "string",
        "updated_timestamp": "string",
        "status": "string",
    },
    optional={
        **dict.fromkeys(
            (path for paths in ENTITY_FIELDS.values() for path in paths), "string | string[]"
        ),
        **dict.fromkeys(("display_name", "name", "description", "severity_name"), "string"),
        **dict.fromkeys(("severity", "score"), "number"),
        **dict.fromkeys(_TIMES, "string | number"),
        **dict.fromkeys(("cmdline", "pattern_disposition_description", "resolution"), "string"),
        **dict.fromkeys(("aggregate_id", "falcon_host_link", "product", "type"), "string"),
        "show_in_ui": "boolean",
        **dict.fromkeys(("technique_id", "tactic_id", "tactic"), "string | string[]"),
        **dict.fromkeys(
            (f"mitre_attack.{name}" for name in ("technique_id", "tactic_id", "tactic")),
            "string | string[]",
        ),
        **dict.fromkeys(("ioc_type", "ioc_context.ioc_type"), "string"),
        **dict.fromkeys(("ioc_value", "ioc_context.ioc_value"), "string | string[]"),
    },
)
CONTRACTS = MappingProxyType({"changed": CONTRACT})
"""By kind of record."""

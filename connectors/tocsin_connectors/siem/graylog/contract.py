"""Fields of Graylog events that the mapping needs.

`EventDto` of https://github.com/Graylog2/graylog2-server. The names in `fields` and
`group_by_fields` are the operator's.
"""

from __future__ import annotations

from types import MappingProxyType

from tocsin import RecordContract
from tocsin_connectors.siem.graylog.client import PROCESSED

_TEXTS = ("message", "timestamp", "event_definition.title", "event_definition.description")
CONTRACT = RecordContract(
    required={"id": "string", PROCESSED: "string", "priority": "number"},
    optional={
        **dict.fromkeys(_TEXTS, "string"),
        **dict.fromkeys(("event_definition.remediation_steps", "event_definition_id"), "string"),
        **dict.fromkeys(("fields", "group_by_fields", "aggregation_conditions"), "object"),
        **dict.fromkeys(("key_tuple", "tactics_techniques"), "string | string[]"),
    },
)
CONTRACTS = MappingProxyType({"changed": CONTRACT})
"""By kind of record."""

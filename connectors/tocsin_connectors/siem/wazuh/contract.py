"""Fields of alerts in the indexer that the mapping needs, in the layouts of Wazuh 4 and 5.

https://documentation.wazuh.com/current/user-manual/wazuh-indexer/wazuh-indexer-indices.html
"""

from __future__ import annotations

from types import MappingProxyType

from tocsin import RecordContract
from tocsin_connectors.siem.indices.ecs_fields import ECS
from tocsin_connectors.siem.wazuh.entity_fields import ALERT_FIELDS

_RULE = ("id", "level", "title", "description")
_MITRE = ("id", "tactic", "technique.id", "subtechnique.id", "tactic.id", "tactic.name")
_AGENT = ("id", "name", "ip", "host.hostname", "host.name", "host.ip")
_BOTH = (
    *(f"rule.{name}" for name in _RULE),
    *(f"rule.mitre.{name}" for name in _MITRE),
    *(f"agent.{name}" for name in _AGENT),
)
CONTRACT = RecordContract(
    required={"_id": "string"},
    optional={
        **dict.fromkeys(("_source.@timestamp", "_source.timestamp"), "string"),
        **dict.fromkeys(
            (f"_source.{path}" for path in (ECS | ALERT_FIELDS).fields), "string | string[]"
        ),
        **dict.fromkeys(
            (f"_source.{prefix}{name}" for prefix in ("", "wazuh.") for name in _BOTH),
            "string | number | string[]",
        ),
    },
)
CONTRACTS = MappingProxyType({"changed": CONTRACT})
"""By kind of record."""

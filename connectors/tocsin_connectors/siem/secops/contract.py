"""Fields of detections that the mapping needs.

https://cloud.google.com/chronicle/docs/reference/rest/v1alpha/Collection
"""

from __future__ import annotations

from types import MappingProxyType

from tocsin import RecordContract
from tocsin_connectors.siem.lookback import CHANGED, NEW
from tocsin_connectors.siem.secops.mapping import ENTITY_FIELDS

_EVENT = "collectionElements.references.event"
_RULE = ("ruleName", "ruleId", "severity", "description", "summary", "urlBackToProduct")
_FEEDBACK = ("status", "priority", "createTime")
_ATTACK = ("techniques.id", "techniques.subtechniqueId", "tactics.id", "tactics.name")
_VARIABLES = ("ruleLabels", "outcomes", "detectionFields")
CONTRACT = RecordContract(
    required={"id": "string", "createdTime": "string", "detection": "object | object[]"},
    optional={
        **dict.fromkeys(("lastUpdatedTime", "detectionTime", "timeWindow.startTime"), "string"),
        **dict.fromkeys((f"feedbackSummary.{name}" for name in _FEEDBACK), "string"),
        **dict.fromkeys((f"detection.{name}" for name in _RULE), "string"),
        "detection.riskScore": "number",
        **dict.fromkeys(
            (f"detection.{name}.{part}" for name in _VARIABLES for part in ("key", "value")),
            "string",
        ),
        **dict.fromkeys((f"detection.attackDetails.{name}" for name in _ATTACK), "string"),
        f"{_EVENT}.metadata.eventTimestamp": "string",
        **dict.fromkeys(
            (f"{_EVENT}.{path}" for paths in ENTITY_FIELDS.values() for path in paths),
            "string | string[]",
        ),
    },
)
CONTRACTS = MappingProxyType(dict.fromkeys((NEW, CHANGED), CONTRACT))
"""By kind of record."""

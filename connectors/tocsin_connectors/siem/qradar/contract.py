"""Fields of offenses that the mapping needs.

https://ibmsecuritydocs.github.io/qradar_api_overview/
"""

from __future__ import annotations

from types import MappingProxyType

from tocsin import RecordContract

_TEXTS = ("description", "assigned_to", "closing_user", "source_network")
_NUMBERS = ("magnitude", "severity", "closing_reason_id", "domain_id", "rules.id")
CONTRACT = RecordContract(
    required={
        "id": "number",
        "status": "string",
        "start_time": "number",
        "offense_type": "number",
        "offense_source": "string",
    },
    optional={
        **dict.fromkeys(("last_persisted_time", "last_updated_time", "close_time"), "number"),
        **dict.fromkeys(_NUMBERS, "number"),
        **dict.fromkeys(("source_address_ids", "local_destination_address_ids"), "number[]"),
        **dict.fromkeys(_TEXTS, "string"),
        **dict.fromkeys(("categories", "destination_networks"), "string | string[]"),
        **dict.fromkeys(("log_sources.name", "log_sources.type_name", "rules.type"), "string"),
        "follow_up": "boolean",
    },
)
CONTRACTS = MappingProxyType(dict.fromkeys(("new", "changed", "closed"), CONTRACT))
"""By kind of record."""

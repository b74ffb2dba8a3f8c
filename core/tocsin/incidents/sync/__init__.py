"""Provider sync: one loop per provider, run by the node that holds its lease."""

from tocsin.incidents.sync.loop import ProviderSync
from tocsin.incidents.sync.status import (
    PROVIDER_STATES,
    ProviderFacts,
    describe_providers,
    list_providers,
    load_statuses,
)

__all__ = [
    "PROVIDER_STATES",
    "ProviderFacts",
    "ProviderSync",
    "describe_providers",
    "list_providers",
    "load_statuses",
]

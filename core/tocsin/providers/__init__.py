"""Building blocks for providers: windowed reads, an HTTP API client, push.

Nothing here depends on a vendor; plugin authors import it from `tocsin`.
"""

from tocsin.providers.client import Api, ApiResponse, ApiSettings, Grant, retry_after
from tocsin.providers.push_provider import PushProvider, extract_token
from tocsin.providers.windowed_provider import Listing, WindowedProvider

__all__ = [
    "Api",
    "ApiResponse",
    "ApiSettings",
    "Grant",
    "Listing",
    "PushProvider",
    "WindowedProvider",
    "extract_token",
    "retry_after",
]

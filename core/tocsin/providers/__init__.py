"""What providers are made of: reading by windows of time, SIEMs' HTTP APIs, taking what is pushed.

Nothing here knows a vendor; `tocsin` hands it all out.
"""

from tocsin.providers.client import Api, ApiResponse, ApiSettings, Grant
from tocsin.providers.push_provider import PushProvider
from tocsin.providers.responses import retry_after
from tocsin.providers.windowed_provider import Listing, WindowedProvider

__all__ = [
    "Api",
    "ApiResponse",
    "ApiSettings",
    "Grant",
    "Listing",
    "PushProvider",
    "WindowedProvider",
    "retry_after",
]

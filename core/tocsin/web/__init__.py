"""The HTTP API."""

from tocsin.web.app import make_app
from tocsin.web.context import ReloadResult
from tocsin.web.runtime import ApiRuntime, open_api_runtime
from tocsin.web.server import ApiRunner, limit_connections

__all__ = [
    "ApiRunner",
    "ApiRuntime",
    "ReloadResult",
    "limit_connections",
    "make_app",
    "open_api_runtime",
]

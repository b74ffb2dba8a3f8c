"""The HTTP API."""

from tocsin.web.app import make_app
from tocsin.web.runtime import ApiRuntime, open_api_runtime
from tocsin.web.server import ApiRunner

__all__ = ["ApiRunner", "ApiRuntime", "make_app", "open_api_runtime"]

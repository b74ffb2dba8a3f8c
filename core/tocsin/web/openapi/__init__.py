"""The API's description (OpenAPI 3.1), made from the endpoint table and its models."""

from tocsin.web.openapi.document import build
from tocsin.web.openapi.schemas import OpenApiDocument

__all__ = ["OpenApiDocument", "build"]

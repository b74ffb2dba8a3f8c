"""The API's description (OpenAPI 3.1), made from the endpoint table and its models."""

from tocsin.web.openapi.document import add_operations, build
from tocsin.web.openapi.schemas import OpenApiDocument

__all__ = ["OpenApiDocument", "add_operations", "build"]

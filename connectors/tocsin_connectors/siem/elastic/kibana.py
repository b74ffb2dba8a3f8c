"""Kibana's API, every request to which needs a field of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tocsin import Api, ApiResponse, Tools
from tocsin_connectors.siem.elastic.settings import ElasticSettings


class KibanaClient(Api):
    """One space of a Kibana."""

    def __init__(self, tools: Tools, settings: ElasticSettings) -> None:
        """Keep what is needed; Kibana refuses what might be a form of another site."""
        super().__init__(tools, settings.model_copy(update={"url": settings.kibana}))
        self._fields = {"kbn-xsrf": "true", **settings.authorization}

    async def request(
        self, method: str, path: str, *, headers: Mapping[str, str] | None = None, **options: Any
    ) -> ApiResponse:
        """Return the answer, as `Api.request` does."""
        fields = {**self._fields, **(headers or {})}
        return await super().request(method, path, headers=fields, **options)

"""Settings of an Elastic provider."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, SecretStr, StringConstraints

from tocsin import ApiSettings, ServerUrl, WindowedProvider

_ALERTS_INDEX = ".alerts-security.alerts-"
IndexPattern = Annotated[str, StringConstraints(pattern=r"^[^\s,/?#\\|\"<>]{1,255}$")]


class ElasticSettings(WindowedProvider.Settings, ApiSettings):
    """Settings of an Elastic provider."""

    url: ServerUrl = Field(
        description="The Elasticsearch URL, such as https://elasticsearch.example.com:9200."
    )
    kibana_url: ServerUrl = Field(
        description="The Kibana URL, such as https://kibana.example.com:5601."
    )
    api_key: SecretStr = Field(
        description="The API key, in the `encoded` form that Elasticsearch returns when you "
        "create the key."
    )
    space: str = Field(
        default="default",
        pattern=r"^[a-z0-9_-]{1,100}$",
        description="The ID of the Kibana space whose alerts and cases Tocsin reads: lowercase "
        "letters, digits, - and _.",
    )
    incidents: tuple[Literal["alerts", "cases"], ...] = Field(
        default=("alerts", "cases"),
        min_length=1,
        max_length=2,
        description="Which records become incidents: alerts, cases or both.",
    )
    event_indexes: tuple[IndexPattern, ...] = Field(
        default=("logs-*", "auditbeat-*", "filebeat-*", "packetbeat-*", "winlogbeat-*"),
        min_length=1,
        description="The indexes in which Tocsin searches for events, as names or patterns such "
        "as logs-*.",
    )

    @property
    def authorization(self) -> dict[str, str]:
        """Header of every request to Elasticsearch and Kibana."""
        return {"Authorization": f"ApiKey {self.api_key.get_secret_value()}"}

    @property
    def alerts_index(self) -> str:
        """Alias of the indexes with the alerts of the space."""
        return f"{_ALERTS_INDEX}{self.space}"

    @property
    def kibana(self) -> str:
        """URL of the space in Kibana."""
        return self.kibana_url + ("" if self.space == "default" else f"/s/{self.space}")

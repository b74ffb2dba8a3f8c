"""What an operator can set of an Elastic provider."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, SecretStr, StringConstraints

from tocsin import ApiSettings, ServerUrl, WindowedProvider

_ALERTS_INDEX = ".alerts-security.alerts-"
IndexPattern = Annotated[str, StringConstraints(pattern=r"^[^\s,/?#\\|\"<>]{1,255}$")]


class ElasticSettings(WindowedProvider.Settings, ApiSettings):
    """What an Elastic provider can be told."""

    url: ServerUrl = Field(
        description="Where Elasticsearch is, such as https://elasticsearch.example.com:9200."
    )
    kibana_url: ServerUrl = Field(
        description="Where Kibana is, such as https://kibana.example.com:5601."
    )
    api_key: SecretStr = Field(description="An API key, as `encoded` when it was made.")
    space: str = Field(
        default="default",
        pattern=r"^[a-z0-9_-]{1,100}$",
        description="The id of the Kibana space whose alerts and cases are read: small letters, "
        "digits, - and _.",
    )
    incidents: tuple[Literal["alerts", "cases"], ...] = Field(
        default=("alerts", "cases"),
        min_length=1,
        max_length=2,
        description="What becomes incidents: alerts, cases or both.",
    )
    event_indexes: tuple[IndexPattern, ...] = Field(
        default=("logs-*", "auditbeat-*", "filebeat-*", "packetbeat-*", "winlogbeat-*"),
        min_length=1,
        description="The indexes to look into for what an entity did, each by a name or a pattern "
        "such as logs-*.",
    )

    @property
    def authorization(self) -> dict[str, str]:
        """The field that each request has, to either of the two."""
        return {"Authorization": f"ApiKey {self.api_key.get_secret_value()}"}

    @property
    def alerts_index(self) -> str:
        """The alias of the indexes with the space's alerts."""
        return f"{_ALERTS_INDEX}{self.space}"

    @property
    def kibana(self) -> str:
        """Where the space is in Kibana."""
        return self.kibana_url + ("" if self.space == "default" else f"/s/{self.space}")

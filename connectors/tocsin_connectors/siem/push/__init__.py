"""Anything that can POST JSON: the shapes of some senders ship as mappings, others are written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import AfterValidator, Field, model_validator

from tocsin import (
    Health,
    LocalPath,
    MappingTemplate,
    Provider,
    PushProvider,
    Received,
    Tools,
    hookimpl,
)

Format = Literal["alertmanager", "datadog", "graylog", "incident", "sumo"]
_SHIPPED: Mapping[str, Path] = {
    name: Path(__file__).parent / "mappings" / f"{name}.json.j2" for name in get_args(Format)
}


def _load(path: Path) -> MappingTemplate:
    """Return the mapping of a file; ValueError says what is wrong with it."""
    try:
        return MappingTemplate(path.read_text(encoding="utf-8"), source="push")
    except OSError as error:
        raise ValueError(f"make {path} readable ({error.strerror})") from None
    except UnicodeDecodeError:
        raise ValueError(f"write {path} in UTF-8") from None


def _loads(path: str) -> str:
    _load(Path(path))
    return path


class Push(PushProvider):
    """Takes what others send, in the shape that a mapping describes."""

    class Settings(PushProvider.Settings):
        """What the provider can be told; one of a format and a mapping of one's own."""

        format: Format | None = Field(
            default=None, description="Whose shape the senders' bodies have."
        )
        mapping_file: Annotated[LocalPath, AfterValidator(_loads)] | None = Field(
            default=None, description="A mapping of your own (.json.j2), for any other shape."
        )

        @model_validator(mode="after")
        def _has_one(self) -> Self:
            if (self.format is None) == (self.mapping_file is None):
                raise ValueError("give either a format or a mapping_file")
            return self

    def __init__(self, settings: Any, tools: Tools) -> None:
        """Keep what is needed; do no I/O."""
        super().__init__(settings, tools)
        self._mapping: MappingTemplate | None = None

    async def start(self) -> None:
        """Compile the mapping."""
        own = self.settings.mapping_file
        self._mapping = _load(Path(own) if own else _SHIPPED[self.settings.format])

    async def check(self) -> Health:
        """Return where to send to; whether anybody does, only the ledger tells."""
        shape = self.settings.mapping_file or self.settings.format
        address = f"{self.tools.public_url}/api/push/{self.tools.name}"
        return Health(detail=f"takes what is sent to {address} in the shape of {shape}")

    def unpack(self, body: bytes) -> Received:
        """Return the incidents of a body."""
        assert self._mapping is not None  # noqa: S101 - it was started
        return self._mapping.read(body, self.tools.clock.now())


@hookimpl
def tocsin_providers() -> type[Provider]:
    """Return the provider."""
    return Push

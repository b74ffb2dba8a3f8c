"""Push provider."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import AfterValidator, Field, model_validator

from tocsin import (
    Health,
    LocalPath,
    MappingTemplate,
    PushProvider,
    Received,
    Tools,
)

Format = Literal["alertmanager", "datadog", "graylog", "incident", "sumo"]
_SHIPPED: Mapping[str, Path] = {
    name: Path(__file__).parent / "mappings" / f"{name}.json.j2" for name in get_args(Format)
}


_RECORDS: Mapping[str, str] = {"alertmanager": "alerts", "incident": ""}
"""The member of a body that is the list of its records, by format; empty for the body itself."""


def _load(path: Path, records: str | None = None) -> MappingTemplate:
    """Load a mapping file. Raises ValueError with the reason if it is invalid."""
    try:
        return MappingTemplate(path.read_text(encoding="utf-8"), source="push", records=records)
    except OSError as error:
        raise ValueError(f"make {path} readable ({error.strerror})") from None
    except UnicodeDecodeError:
        raise ValueError(f"write {path} in UTF-8") from None


def _check_mapping(path: str) -> str:
    _load(Path(path))
    return path


class PushSettings(PushProvider.Settings):
    """Settings of a push provider: a shipped format or a custom mapping."""

    format: Format | None = Field(
        default=None,
        description="The format of the request bodies. For other formats, set `mapping_file` "
        "instead.",
    )
    mapping_file: Annotated[LocalPath, AfterValidator(_check_mapping)] | None = Field(
        default=None,
        description="The path of a custom mapping (.json.j2), for formats that `format` does "
        "not support.",
    )
    records: str | None = Field(
        default=None,
        description="The name of the member that contains the list of records in the body. If "
        "the body itself is the list, set an empty string. With this setting, Tocsin applies "
        "the custom mapping to batches of records.",
    )

    @classmethod
    def find_start_files(cls, table: Mapping[str, Any], folder: Path) -> Iterator[Path]:
        """Yield the custom mapping, too."""
        yield from super().find_start_files(table, folder)
        if isinstance(own := table.get("mapping_file"), str):
            yield (folder / own).absolute()

    @model_validator(mode="after")
    def _has_one(self) -> Self:
        if (self.format is None) == (self.mapping_file is None):
            raise ValueError("set either `format` or `mapping_file`")
        if self.records is not None and self.mapping_file is None:
            raise ValueError("remove `records`; it requires `mapping_file`")
        return self


class Push(PushProvider[PushSettings]):
    """Accepts JSON records that other systems push, and maps them to incidents."""

    def __init__(self, settings: Any, tools: Tools) -> None:
        """Store the dependencies. Performs no I/O."""
        super().__init__(settings, tools)
        self._mapping: MappingTemplate | None = None

    async def start(self) -> None:
        """Compile the mapping."""
        own, name = self.settings.mapping_file, str(self.settings.format)
        self._mapping = (
            _load(Path(own), self.settings.records)
            if own
            else _load(_SHIPPED[name], _RECORDS.get(name))
        )

    async def check(self) -> Health:
        """Return the address for senders. Only the ledger shows whether anything is sent."""
        shape = self.settings.mapping_file or self.settings.format
        address = f"{self.tools.public_url}/api/push/{self.tools.name}"
        return Health(detail=f"accepts {shape} requests at {address}")

    def unpack(self, body: bytes, received_at: datetime) -> Iterable[Received]:
        """Return the incidents in a request body, in batches."""
        assert self._mapping is not None  # noqa: S101 - it was started
        return self._mapping.read(body, received_at)

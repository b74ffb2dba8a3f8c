"""The pages of providers list every setting, and the overview says what the code maps."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from datetime import timedelta
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from pydantic import TypeAdapter
from pydantic.fields import FieldInfo

import tocsin_connectors.siem
from tocsin import Capability, Duration, EntityKind
from tocsin_connectors.siem.crowdstrike import mapping as crowdstrike
from tocsin_connectors.siem.datadog.mapping import LOG_TABLE, SAMPLE_TABLE
from tocsin_connectors.siem.elastic import mapping as elastic
from tocsin_connectors.siem.entity_fields import FieldContent, FieldTable
from tocsin_connectors.siem.exabeam import mapping as exabeam
from tocsin_connectors.siem.files.provider import FileProvider
from tocsin_connectors.siem.graylog.mapping import INFORMATION_MODEL
from tocsin_connectors.siem.indices.ecs_fields import ECS, LOGS
from tocsin_connectors.siem.insightidr import mapping as insightidr
from tocsin_connectors.siem.secops import mapping as secops
from tocsin_connectors.siem.splunk import mapping as splunk
from tocsin_connectors.siem.wazuh.entity_fields import ALERT_FIELDS

FOLDER = Path(__file__).parents[2] / "docs" / "operators" / "providers"
CODE = Path(tocsin_connectors.siem.__path__[0])
NAMES = sorted(entry.name for entry in entry_points(group="tocsin.providers"))
KINDS = {"address": "ip", "file hash": "file_hash", "cloud resource": "cloud_resource"}
CONTENT_KINDS = {
    FieldContent.ADDRESS: ("ip",),
    FieldContent.SHORT_HOST: ("host",),
    FieldContent.NAME: ("host", "domain"),
    FieldContent.PRINCIPAL: ("user",),
    FieldContent.PROGRAM: ("process", "file"),
    FieldContent.TEXT: (),
}
COLUMNS = {
    "Status": "status",
    "Techniques": "techniques",
    "Tactics": "tactics",
    "Link": "source_url",
}


def read_tables() -> tuple[dict[str, dict[str, str]], dict[str, dict[str, str]]]:
    """Return the rows of both tables, by provider and column."""
    found: list[dict[str, dict[str, str]]] = []
    columns: list[str] = []
    for line in (FOLDER / "README.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| Provider"):
            columns = cells
            found.append({})
        elif line.startswith("| ["):
            found[-1][cells[0][1:].partition("]")[0]] = dict(zip(columns, cells, strict=True))
    incidents, entities = found
    return incidents, entities


INCIDENTS, ENTITIES = read_tables()


def list_kinds(table: FieldTable) -> set[str]:
    return {
        kind
        for content, _ in table.fields.values()
        for kind in CONTENT_KINDS.get(content, (content.value,))
    }


def list_arguments(name: str) -> set[str]:
    """Return the members that a provider's code gives to incidents."""
    calls = [
        node
        for file in (CODE / name).glob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    ]
    return {
        keyword.arg
        for call in calls
        if getattr(call.func, "id", "") in {"Incident", "replace"}
        for keyword in call.keywords
        if keyword.arg
    }


def test_every_provider_is_in_both_tables():
    assert sorted(INCIDENTS) == sorted(ENTITIES) == NAMES


@pytest.mark.parametrize("name", [name for name in NAMES if name != "push"])
def test_columns_are_filled_where_the_code_maps(name):
    given = list_arguments(name)
    filled = {column for column in COLUMNS if INCIDENTS[name][column]}
    assert filled == {column for column, member in COLUMNS.items() if member in given}


@pytest.mark.parametrize("name", NAMES)
def test_searchable_kinds_are_those_of_the_provider(name):
    provider = import_module(f"tocsin_connectors.siem.{name}").tocsin_providers()
    marked = {
        EntityKind(KINDS.get(column, column.lower()))
        for column, cell in ENTITIES[name].items()
        if cell in {"both", "searches"}
    }
    can_search = Capability.EVENTS in provider.capabilities()
    assert marked == (set(provider.event_kinds) if can_search else set())


TABLES: Mapping[str, set[str]] = {
    "crowdstrike": {
        *map(str, crowdstrike.ENTITY_FIELDS),
        *map(str, crowdstrike._INDICATOR_TYPES.values()),
    },
    "datadog": list_kinds(LOG_TABLE | SAMPLE_TABLE),
    "ecs": list_kinds(ECS | LOGS),
    "elastic": set(map(str, elastic.ENTITY_FIELDS)),
    "exabeam": list_kinds(exabeam.ENTITY_TABLE),
    "graylog": list_kinds(ECS | LOGS | INFORMATION_MODEL),
    "insightidr": list_kinds(insightidr.ENTITY_TABLE),
    "opensearch": list_kinds(ECS | LOGS),
    "secops": set(map(str, secops._READ_FIELDS)),
    "splunk": set(map(str, splunk._CIM_FIELDS)),
    "wazuh": list_kinds(ECS | ALERT_FIELDS),
}


def list_documented_kinds(name: str) -> set[str]:
    """Return the kinds that incidents of a provider name, as the overview says."""
    return {
        KINDS.get(column, column.lower())
        for column, cell in ENTITIES[name].items()
        if cell in {"both", "incidents"}
    }


@pytest.mark.parametrize("name", TABLES)
def test_kinds_of_incidents_are_those_of_the_table(name):
    assert list_documented_kinds(name) == TABLES[name]


def read_settings(text: str) -> dict[str, str]:
    """Return the defaults in the tables of settings of a text."""
    tables = re.findall(r"^\| Setting \|.*?(?:\n\n|\Z)", text, re.DOTALL | re.MULTILINE)
    rows = re.findall(r"^\| (`.+?) \| (.*?) ?\|", "\n".join(tables), re.MULTILINE)
    return {name: default for names, default in rows for name in re.findall(r"`(\w+)`", names)}


COMMON_SETTINGS = read_settings((FOLDER.parent / "sync.md").read_text())
FILE_SETTINGS = read_settings((FOLDER / "files.md").read_text())


def is_default(documented: str, field: FieldInfo) -> bool:
    """Tell whether a table gives the default of a setting, or describes a computed one."""
    if field.is_required() or documented == "required":
        return field.is_required() and documented == "required"
    values = re.findall("`([^`]+)`", documented)
    default = field.get_default(call_default_factory=True)
    if default in (None, "", (), {}):
        return not values
    if isinstance(default, str | tuple) and not values:
        return documented != "none"
    defaults = default if isinstance(default, tuple) else (default,)
    if isinstance(defaults[0], timedelta):
        return [TypeAdapter(Duration).validate_python(value) for value in values] == [*defaults]
    return [value.lower() for value in values] == [str(value).lower() for value in defaults]


@pytest.mark.parametrize("name", NAMES)
def test_every_setting_is_listed_with_its_default(name):
    provider = import_module(f"tocsin_connectors.siem.{name}").tocsin_providers()
    fields = {
        key: field for key, field in provider.Settings.model_fields.items() if key != "plugin"
    }
    own = read_settings((FOLDER / f"{name}.md").read_text())
    shared = COMMON_SETTINGS | (FILE_SETTINGS if issubclass(provider, FileProvider) else {})
    assert own.keys() - fields.keys() == set()
    listed = shared | own
    assert fields.keys() - listed.keys() == set()
    wrong = [key for key, field in fields.items() if not is_default(listed[key], field)]
    assert wrong == []

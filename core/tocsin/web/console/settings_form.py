"""Settings form of a plugin: fields from the API's description, and values from the form."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from tocsin.registry import SettingShape
from tocsin.web.console.forms import Form

_SECRET = "secret-"  # noqa: S105 - a prefix of field names
_FORGET = "forget."
_WAS = "was."
_ACRONYMS = {
    **{word: word.upper() for word in ("api", "ca", "html", "id", "pap", "smtp", "ssl", "tls")},
    "tlp": "TLP",
    "url": "URL",
    "urls": "URLs",
    "cloudevents": "CloudEvents",
}
_SECTIONS = {
    "Events and filters": ("events", "min_severity", "providers", "when", "template", "ordered"),
    "Retries and limits": (
        *("timeout", "concurrency", "rate_limit", "retry_schedule"),
        *("pause_after", "pause_after_failures", "probe_interval"),
    ),
    "Network": (*("allow_networks", "ca_file", "client_certificate", "client_key", "proxy"),),
}
"""Collapsed sections of the common settings, by purpose."""


@dataclass(frozen=True, slots=True)
class SettingField:
    """Field of a settings form with its current value."""

    name: str
    key: str
    """Name of the form field, which includes the shape of the setting."""
    setting: Mapping[str, Any]
    text: str
    chosen: Sequence[str]
    is_set: bool
    """Whether the field is a secret that is set; its value is not known here."""

    @property
    def label(self) -> str:
        """Name of the setting as people write it, such as "CA file" for `ca_file`."""
        first, *others = (_ACRONYMS.get(word, word) for word in self.name.split("_"))
        return " ".join((first[:1].upper() + first[1:], *others))

    @property
    def forget(self) -> str:
        """Name of the checkbox that removes a secret."""
        return _FORGET + self.name

    @property
    def was(self) -> tuple[str, str]:
        """Name and value of the hidden field with the original value."""
        is_several = _parse_shape(self.key) == SettingShape.CHOICES
        return _WAS + self.key, "\n".join(self.chosen) if is_several else self.text


def build_fields(
    channel: Mapping[str, Any], written: Mapping[str, Any], secrets: Sequence[str] = ()
) -> list[SettingField]:
    """Return a field for each setting that the API can change, filled from `written`."""
    return [
        _field(setting, written.get(setting["name"]), setting["name"] in secrets)
        for setting in channel["settings"]
        if not setting["local"]
    ]


def group_fields(fields: Sequence[SettingField]) -> list[tuple[str, list[SettingField]]]:
    """Return the fields by section: first the channel's own, in a section without a name.

    Common settings that no section names come last.
    """
    common = {field.name: field for field in fields if field.setting["common"]}
    sections = [("", [field for field in fields if field.name not in common])]
    for title, names in _SECTIONS.items():
        sections.append((title, [common.pop(name) for name in names if name in common]))
    sections.append(("Other settings", list(common.values())))
    return [(title, members) for title, members in sections if members]


def _field(setting: Mapping[str, Any], value: Any, is_set: bool) -> SettingField:
    prefix = _SECRET if setting["secret"] else ""
    return SettingField(
        name=setting["name"],
        key=f"{prefix}{setting['shape']}.{setting['name']}",
        setting=setting,
        text="" if value is None else _format_value(setting["shape"], value),
        chosen=value if isinstance(value, list) else (),
        is_set=is_set,
    )


def _format_value(shape: str, value: Any) -> str:
    match value:
        case list() if shape == SettingShape.LIST:
            return "\n".join(map(str, value))
        case dict() if shape == SettingShape.TABLE:
            # sorted, because PostgreSQL does not keep the order
            return "\n".join(f"{name}: {text}" for name, text in sorted(value.items()))
        case str() if shape != SettingShape.ANYTHING or _parse_json(value) == value:
            return value
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()


def find_errors(wrong: Iterable[Mapping[str, str]], name: str) -> list[Mapping[str, str]]:
    """Return the errors of one setting and its members."""
    place = f"settings.{name}"
    return [
        error for error in wrong if error["path"] == place or error["path"].startswith(f"{place}.")
    ]


def read_settings(form: Form) -> dict[str, Any]:
    """Return the settings in a form; empty fields are null.

    Unchanged fields are omitted, because they may have been changed elsewhere. Secrets are included
    only if they were entered, because the field of an existing secret is empty.
    """
    fields = [(key, name) for key, name in _list_fields(form) if not _is_unchanged(form, key)]
    read = {name: _read_field(form, key) for key, name in fields}
    secret = {name for key, name in fields if key.startswith(_SECRET)}
    kept = {name for name in secret if read[name] is None and not form.text(_FORGET + name)}
    return {name: value for name, value in read.items() if name not in kept}


def _list_fields(form: Form) -> list[tuple[str, str]]:
    """Return the keys of the form fields with the names of their settings."""
    parts = ((key, *key.partition(".")) for key in form)
    return [(key, name) for key, how, dot, name in parts if dot and _shape(how) in _READERS]


def _is_unchanged(form: Form, key: str) -> bool:
    now = "\n".join(text for text in form.several[key] if text).strip()
    return _WAS + key in form and form.text(_WAS + key) == now


def _parse_shape(key: str) -> str:
    return _shape(key.partition(".")[0])


def _shape(how: str) -> str:
    return how.removeprefix(_SECRET)


def _read_field(form: Form, key: str) -> Any:
    shape = _parse_shape(key)
    if shape == SettingShape.CHOICES:
        return [text for text in form.several[key] if text] or None
    text = form.text(key)
    return _READERS[shape](text) if text else None


def _parse_lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _parse_table(text: str) -> Any:
    """Parse lines such as `Name: value` into a table; return other text unchanged."""
    pairs = [line.partition(":") for line in _parse_lines(text)]
    if not all(colon for _, colon, _ in pairs):
        return text  # the plugin rejects it
    return {name.strip(): value.strip() for name, _, value in pairs}


def _parse_number(text: str) -> Any:
    value = _parse_json(text)
    return (
        value if type(value) in (int, float) else text
    )  # `true` is an int in Python, but not a number


def _parse_flag(text: str) -> Any:
    return {"true": True, "false": False}.get(text, text)


def _parse_json(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


_READERS: Mapping[str, Callable[[str], Any]] = {
    SettingShape.TEXT: str,
    SettingShape.NUMBER: _parse_number,
    SettingShape.FLAG: _parse_flag,
    SettingShape.CHOICE: str,
    SettingShape.CHOICES: str,
    SettingShape.LIST: _parse_lines,
    SettingShape.TABLE: _parse_table,
    SettingShape.ANYTHING: _parse_json,
}

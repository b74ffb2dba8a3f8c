"""Contracts of receivers: data beside their templates on accepted input and responses."""

from tocsin.contracts.loader import CONTRACT, SCHEMA, load_contract
from tocsin.contracts.validation import (
    BODY,
    SettingMismatch,
    find_all_violations,
    find_mismatches,
    find_violations,
)

__all__ = [
    "BODY",
    "CONTRACT",
    "SCHEMA",
    "SettingMismatch",
    "find_all_violations",
    "find_mismatches",
    "find_violations",
    "load_contract",
]

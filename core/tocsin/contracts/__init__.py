"""Contracts: what receivers take and answer, as data that stands beside their templates."""

from tocsin.contracts.loader import CONTRACT, SCHEMA, load_contract
from tocsin.contracts.validation import (
    BODY,
    SettingMismatch,
    find_all_breaches,
    find_breaches,
    find_mismatches,
)

__all__ = [
    "BODY",
    "CONTRACT",
    "SCHEMA",
    "SettingMismatch",
    "find_all_breaches",
    "find_breaches",
    "find_mismatches",
    "load_contract",
]

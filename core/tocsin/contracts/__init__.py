"""Contracts: what receivers take and answer, as data that stands beside their templates."""

from tocsin.contracts.fitting import SettingMismatch, find_mismatches
from tocsin.contracts.judging import BODY, find_all_breaches, find_breaches
from tocsin.contracts.loading import CONTRACT, SCHEMA, load_contract

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

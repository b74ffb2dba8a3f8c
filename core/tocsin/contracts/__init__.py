"""Contracts: what receivers take and answer, as data that stands beside their templates."""

from tocsin.contracts.fitting import Misfit, find_misfits
from tocsin.contracts.judging import BODY, find_all_breaches, find_breaches
from tocsin.contracts.loading import CONTRACT, SCHEMA, load_contract

__all__ = [
    "BODY",
    "CONTRACT",
    "SCHEMA",
    "Misfit",
    "find_all_breaches",
    "find_breaches",
    "find_misfits",
    "load_contract",
]

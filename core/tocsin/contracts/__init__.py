"""Contracts: what receivers take and answer, as data that stands beside their templates."""

from tocsin.contracts.judging import find_breaches
from tocsin.contracts.loading import CONTRACT, SCHEMA, load_contract

__all__ = ["CONTRACT", "SCHEMA", "find_breaches", "load_contract"]

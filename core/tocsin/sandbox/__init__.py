"""Sandbox for text of operators: Jinja2 without access, bounded in time and memory.

Jinja's own sandbox keeps expressions away from Python, but lets them run forever. Here each
evaluation has an allowance, and pays from it for what it runs, reads and produces.
"""

from tocsin.sandbox.allowance import Allowance, AllowanceExhausted, pause, require_data, spend
from tocsin.sandbox.environment import BoundedEnvironment, WritingEnvironment, write_json
from tocsin.sandbox.filters import shorten

__all__ = [
    "Allowance",
    "AllowanceExhausted",
    "BoundedEnvironment",
    "WritingEnvironment",
    "pause",
    "require_data",
    "shorten",
    "spend",
    "write_json",
]

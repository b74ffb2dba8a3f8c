"""Where text of operators is evaluated: Jinja2 that reaches nothing, takes no time and no memory.

Jinja's own sandbox keeps expressions away from Python; it lets them run for ever. Here each
evaluation has an allowance, out of which it pays for whatever it runs, looks at and makes.
"""

from tocsin.sandbox.allowance import Allowance, AllowanceExhausted, pause, spend
from tocsin.sandbox.environment import BoundedEnvironment, WritingEnvironment, write_json

__all__ = [
    "Allowance",
    "AllowanceExhausted",
    "BoundedEnvironment",
    "WritingEnvironment",
    "pause",
    "spend",
    "write_json",
]

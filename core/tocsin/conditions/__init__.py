"""Conditions and expressions of operators over events, whose content is untrusted.

The syntax is that of Jinja2 expressions. The language is a part of it that always ends: it has no
loops, no definitions and no access to Python, only values of JSON. What an expression may use is
decided when it is parsed, and what it costs is paid before it is done.
"""

from tocsin.conditions.expression import (
    MAX_LENGTH,
    Condition,
    ConditionText,
    Expression,
    ExpressionText,
    make_allowance,
)

__all__ = [
    "MAX_LENGTH",
    "Condition",
    "ConditionText",
    "Expression",
    "ExpressionText",
    "make_allowance",
]

"""Conditions and expressions of operators over events, whose content is untrusted.

They are Jinja2 expressions in the sandbox of templates, without its globals. A value that an event
lacks is false and equal to nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

from jinja2 import ChainableUndefined, TemplateAssertionError, TemplateSyntaxError, Undefined, nodes
from pydantic import AfterValidator

from tocsin.sandbox import Allowance, BoundedEnvironment

VARIABLES = ("event_type", "data", "subject", "context")
LONGEST = 1_000
MAX_UNITS = 200_000
MAX_SECONDS = 0.05
_ASSIGNS = re.compile(r"(?<![=!<>])=(?!=)")
_HINT = "; to compare, write == instead of ="


class _Missing(ChainableUndefined):
    def _is_not(self, _other: object) -> bool:
        return False

    def __call__(self, *_args: object, **_members: object) -> _Missing:  # type: ignore[override]
        return self

    __lt__ = __le__ = __gt__ = __ge__ = _is_not  # type: ignore[assignment]


class _Environment(BoundedEnvironment):
    def _generate(self, source: nodes.Template, *args: Any, **options: Any) -> str:
        for name in source.find_all(nodes.Name):
            if name.ctx == "load" and name.name not in VARIABLES:
                known = ", ".join(VARIABLES)
                raise TemplateAssertionError(f"{name.name!r} is not one of {known}", name.lineno)
        return super()._generate(source, *args, **options)


_environment = _Environment(undefined=_Missing)
_environment.globals = {}


class Expression:
    """An expression over an event; ValueError if the text is not an expression."""

    def __init__(self, text: str) -> None:
        if len(text) > LONGEST:
            raise ValueError(f"an expression may have at most {LONGEST:,} characters")
        try:
            self._evaluate = _environment.compile_expression(text, undefined_to_none=False)
        except TemplateSyntaxError as error:
            message = f"this is not a Jinja2 expression: {error.message}"
            raise ValueError(f"{message}{_HINT if _ASSIGNS.search(text) else ''}") from None
        except Exception:  # noqa: BLE001 - of Python's compiler, which has limits of its own
            raise ValueError("this expression is nested too deeply") from None

    def value(self, variables: Mapping[str, Any]) -> Any:
        """Return the value for these variables; None if the event lacks it.

        Raises whatever the expression raises, `AllowanceExhausted` if it takes too much time or
        memory.
        """
        with Allowance(MAX_UNITS, MAX_SECONDS):
            found = self._evaluate(**variables)
        return None if isinstance(found, Undefined) else found


class Condition(Expression):
    """An expression that an event matches or not."""

    def holds(self, variables: Mapping[str, Any]) -> bool:
        """Return whether it is true of these variables; raises what `value` raises."""
        return bool(self.value(variables))


def _compiles(text: str) -> str:
    Expression(text)
    return text


ExpressionText = Annotated[str, AfterValidator(_compiles)]
"""Text of a valid expression."""
ConditionText = ExpressionText
"""Text of a condition, which is a valid expression."""

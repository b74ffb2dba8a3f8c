"""Option types: timestamps and choices."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, TypeVar

import typer
from pydantic import TypeAdapter, ValidationError

from tocsin.errors import OperatorError
from tocsin.fields import Duration
from tocsin.store.tables import EPOCH
from tocsin.validation import suggest_nearest

_Duration: TypeAdapter[timedelta] = TypeAdapter(Duration)


def parse_moment(option: str, text: str, now: datetime) -> datetime:
    """Parse a time, or a duration before now; raises OperatorError for any other text."""
    try:
        return max(now - _Duration.validate_python(text), EPOCH)
    except (ValidationError, OverflowError):
        pass
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None or moment < EPOCH:
        raise OperatorError(
            f"{option}: found {text!r}; use a duration to count back from now, such as 24h or 7d, "
            "or a time with a time zone, such as 2026-11-21T05:33:01Z"
        )
    return moment


Word = TypeVar("Word", bound=StrEnum)


def choice_option(words: type[Word], *names: str, help: str) -> Any:  # noqa: A002 - as typer calls it
    """Return an option that accepts one of these words and ignores case."""
    return typer.Option(*names, help=help, parser=_parser(words), metavar=f"[{'|'.join(words)}]")


def _parser(words: type[Word]) -> Callable[[str], Word]:
    known = {word.casefold(): word for word in words}

    def parse(text: str) -> Word:
        if word := known.get(text.casefold()):
            return word
        names = [word.value for word in words]
        hint = suggest_nearest(text, names)
        raise typer.BadParameter(f"found {text!r}; use one of: {', '.join(names)}{hint}")

    return parse

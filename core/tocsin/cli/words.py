"""Options that take one word out of a few."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any, TypeVar

import typer

from tocsin.validation import suggest_nearest

Word = TypeVar("Word", bound=StrEnum)


def choice_option(words: type[Word], *names: str, help: str) -> Any:  # noqa: A002 - as typer calls it
    """Return an option whose values are these words, in any case; it says which where none fits."""
    return typer.Option(*names, help=help, parser=_parser(words), metavar=f"[{'|'.join(words)}]")


def _parser(words: type[Word]) -> Callable[[str], Word]:
    known = {word.casefold(): word for word in words}

    def parse(text: str) -> Word:
        if word := known.get(text.casefold()):
            return word
        names = [word.value for word in words]
        hint = suggest_nearest(text, names)
        raise typer.BadParameter(f"found {text!r}; give one of: {', '.join(names)}{hint}")

    return parse

"""`tocsin completion`: static scripts that complete commands and options in shells."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import Annotated, Any

import typer

from tocsin.cli.output import print_text

Words = Mapping[str, str | None]


class Shell(StrEnum):
    """A shell with completion."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(
    context: typer.Context,
    shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="Shell: bash, zsh or fish.")],
) -> None:
    """Print a completion script for a shell.

    The script contains all commands and options, so completing a command does not start `tocsin`.
    After you upgrade Tocsin, print the script again.
    """
    tree = dict(_list_words(context.find_root().command))
    print_text(_SCRIPTS[shell](tree))


def _list_words(command: Any, path: str = "") -> Iterator[tuple[str, Words]]:
    """Yield the path of each command, and the words that may follow it with their descriptions."""
    children = getattr(command, "commands", {})
    words: dict[str, str | None] = {
        name: (child.help or "").strip().partition("\n")[0] for name, child in children.items()
    }
    for parameter in command.params:
        help_text = getattr(parameter, "help", None)
        words |= {option: help_text for option in parameter.opts if option.startswith("--")}
    yield path, words | {"--help": "Show the help and exit."}
    for name, child in children.items():
        yield from _list_words(child, f"{path} {name}")


def _write_cases(tree: Mapping[str, Words], line: Callable[[str], str]) -> str:
    """Return the branches of a `case` on the path of a command."""
    return "\n".join(
        f"    {shlex.quote(path)}) {line(' '.join(words))} ;;" for path, words in tree.items()
    )


def _write_walk(tree: Mapping[str, Words]) -> str:
    """Return the pattern of the paths of all commands."""
    return "|".join(shlex.quote(path) for path in tree if path)


def _write_bash(tree: Mapping[str, Words]) -> str:
    return f"""_tocsin() {{
  local given command='' options=''
  for given in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case "$command $given" in
    {_write_walk(tree)}) command="$command $given" ;;
    esac
  done
  case "$command" in
{_write_cases(tree, lambda words: f"options={shlex.quote(words)}")}
  esac
  COMPREPLY=($(compgen -W "$options" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _tocsin tocsin"""


def _write_zsh(tree: Mapping[str, Words]) -> str:
    return f"""#compdef tocsin
_tocsin() {{
  local given command=''
  local -a options
  for given in ${{words[2,CURRENT-1]}}; do
    case "$command $given" in
    {_write_walk(tree)}) command="$command $given" ;;
    esac
  done
  case "$command" in
{_write_cases(tree, lambda words: f"options=({words})")}
  esac
  compadd -- $options || _files
}}
compdef _tocsin tocsin"""


def _write_fish(tree: Mapping[str, Words]) -> str:
    lines = []
    for path, words in tree.items():
        names = path.split()
        children = [word for word in words if not word.startswith("--")]
        seen = [f"__fish_seen_subcommand_from {name}" for name in names]
        if children:
            seen.append(f"not __fish_seen_subcommand_from {' '.join(children)}")
        condition = shlex.quote("; and ".join(seen))
        for word, description in words.items():
            kind = f"-l {word[2:]}" if word.startswith("--") else f"-f -a {word}"
            about = f" -d {_quote_fish(description)}" if description else ""
            lines.append(f"complete -c tocsin -n {condition} {kind}{about}")
    return "\n".join(lines)


def _quote_fish(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


_SCRIPTS: Mapping[Shell, Callable[[Mapping[str, Words]], str]] = {
    Shell.BASH: _write_bash,
    Shell.ZSH: _write_zsh,
    Shell.FISH: _write_fish,
}

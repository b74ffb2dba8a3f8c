"""Distribution of a new plugin, filled from the templates beside this module.

Each template is a `string.Template` and ends in `.tmpl`, so that tools do not treat it as code.
`provider` produces `examples/tocsin-example-provider`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from string import Template

import tocsin
from tocsin.errors import OperatorError

_TEMPLATES = Path(__file__).parent
_SUFFIX = ".tmpl"
_NAME = re.compile(r"(?=.{1,40}$)[a-z][a-z0-9]*(-[a-z0-9]+)*")


@dataclass(frozen=True, slots=True)
class Scaffold:
    """A new distribution; `kind` is the name of a folder beside this module."""

    name: str
    kind: str

    @property
    def distribution(self) -> str:
        """The name of the distribution and of its folder."""
        return f"tocsin-{self.name}"

    @property
    def module(self) -> str:
        """The name of the package."""
        return self.distribution.replace("-", "_")

    @property
    def title(self) -> str:
        """The plugin's name in sentences, and the prefix of its class names."""
        return "".join(map(str.capitalize, self.name.split("-")))

    def files(self) -> Mapping[str, str]:
        """Return the text of each file, by its path in the distribution."""
        folder = _TEMPLATES / self.kind
        return {
            self._path(file.relative_to(folder)): self._fill(file)
            for file in sorted(folder.rglob(f"*{_SUFFIX}"))
        }

    def make(self, parent: Path, installed: Iterable[str]) -> Path:
        """Write the files into a new folder in `parent`, and return it.

        Raises OperatorError if the name cannot be used or the folder exists.
        """
        self._check(set(installed))
        folder = parent / self.distribution
        try:
            folder.mkdir(parents=True)
            for path, text in self.files().items():
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_text(text, encoding="utf-8")
        except FileExistsError:
            raise OperatorError(f"{folder} already exists; nothing was written") from None
        except OSError as error:
            raise OperatorError(f"cannot write {folder}: {error.strerror}") from error
        return folder

    def lines(self) -> str:
        """Return the two lines of `plugins.toml` that enable the plugin."""
        return self._fill(_TEMPLATES / self.kind / f"plugins.toml{_SUFFIX}")

    def _path(self, path: Path) -> str:
        return path.as_posix().removesuffix(_SUFFIX).replace("/package/", f"/{self.module}/")

    def _fill(self, file: Path) -> str:
        names = {
            "name": self.name,
            "distribution": self.distribution,
            "module": self.module,
            "title": self.title,
            "versions": _bound_versions(),
            "variable": self.module.removeprefix("tocsin_").upper(),
        }
        return Template(file.read_text(encoding="utf-8")).substitute(names)

    def _check(self, installed: set[str]) -> None:
        if not _NAME.fullmatch(self.name):
            found = f"found the name {self.name!r}"
            expected = (
                "use at most 40 lowercase letters, digits and single hyphens, and start with a "
                "letter"
            )
            raise OperatorError(f"{found}; {expected}")
        if self.name in installed:
            raise OperatorError(
                f"a plugin named {self.name!r} is already installed; choose another name"
            )
        kind = f"{self.title}{self.kind.rpartition('-')[2].capitalize()}"
        if kind in tocsin.__all__ or find_spec(self.module) is not None:
            raise OperatorError(f"the name {self.name!r} is already in use; choose another name")


def _bound_versions() -> str:
    """Return the range of compatible versions; before 1.0, each minor can change interfaces.

    See docs/plugin-authors/stability.md.
    """
    major, minor = map(int, tocsin.__version__.split(".")[:2])
    following = f"{major + 1}" if major else f"0.{minor + 1}"
    return f">={major}.{minor},<{following}"

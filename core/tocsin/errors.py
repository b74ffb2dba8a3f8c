"""The tree of errors.

::

    TocsinError
    ├── OperatorError            an operator can correct it; the CLI shows it without a traceback
    │   ├── ConfigurationError   every problem of a configuration at once
    │   └── RequestError         the request cannot be carried out as it is
    │       ├── InvalidInputError
    │       ├── NotFoundError
    │       ├── ConflictError
    │       └── AccessDeniedError
    ├── NameTakenError           an object with this name exists
    └── PluginFailure            raised by a plugin that could not do its work
        ├── InvestigationFailed  there is nothing to report
        ├── TryLater             temporary
        ├── Broken               the remote system answered, but not with what was asked for
        └── Refused              permanent: a retry fails too
            └── Misconfigured    until the configuration is corrected
                └── CredentialsRefused

Anything else that is raised is a bug: in the core, or in the plugin that raised it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from http import HTTPStatus


class TocsinError(Exception):
    """The base of every error that Tocsin raises on purpose."""


class OperatorError(TocsinError):
    """Something that an operator can mend; its text says where and how."""


@dataclass(frozen=True, slots=True)
class ConfigurationProblem:
    """One mistake in a configuration: where it is, what was found, what would be right."""

    file: str
    key: str
    found: str
    expected: str

    def __str__(self) -> str:
        """Return the problem as one line."""
        place = f"{self.file}: {self.key}" if self.key else self.file
        found = f"{self.found}; " if self.found else ""
        return f"{place}: {found}{self.expected}"


class ConfigurationError(OperatorError):
    """A configuration with one or more problems, all of them in `problems`."""

    def __init__(self, problems: Sequence[ConfigurationProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class RequestError(OperatorError):
    """A request that cannot be carried out as it is; the text says why."""


class InvalidInputError(RequestError):
    """The request holds a value that cannot be used."""


class NotFoundError(RequestError):
    """The record that the request names does not exist."""


class ConflictError(RequestError):
    """The state of a record does not allow the request."""


class AccessDeniedError(RequestError):
    """The caller is known, but may not do this."""


class NameTakenError(TocsinError):
    """There is an object of this name already."""


class PluginFailure(TocsinError):  # noqa: N818 - the names are what a plugin says, not what it is
    """A plugin could not do what it was asked; raise one of the kinds below."""


class InvestigationFailed(PluginFailure):
    """An investigation comes to nothing; the text says why, for whoever asked."""


class TryLater(PluginFailure):
    """It will pass by itself. `after` is the delay that the far side named, if it named one.

    `throttled` says that the far side has too much to do: everything that goes there waits.
    `unsent` says that nothing was sent and it only waits, which counts for no attempt.
    `partly` says that some of it arrived, so that nothing speaks against the far side.
    """

    def __init__(
        self,
        reason: str,
        *,
        after: timedelta | None = None,
        throttled: bool = False,
        unsent: bool = False,
        partly: bool = False,
        status: int | None = None,
        response: bytes = b"",
    ) -> None:
        super().__init__(reason)
        self.after = after
        self.throttled = throttled
        self.unsent = unsent
        self.partly = partly
        self.status = status
        self.response = response


class Broken(PluginFailure):
    """The far side answered, but with an error of its own or with what cannot be an answer.

    Where only some of what was asked for does that, a `WindowedProvider` finds out which, records
    it as lost and reads on.
    """


class Refused(PluginFailure):
    """It will fail again however often it is tried; `status` and `response` are what was answered.

    `unwanted` says that the far side wants nothing more at all: its destination is disabled.
    """

    def __init__(
        self,
        reason: str,
        *,
        unwanted: bool = False,
        status: int | None = None,
        response: bytes = b"",
    ) -> None:
        super().__init__(reason)
        self.unwanted = unwanted
        self.status = status
        self.response = response

    @property
    def is_missing(self) -> bool:
        """Whether the far side says that it has no such thing."""
        return self.status == HTTPStatus.NOT_FOUND


class Misconfigured(Refused):
    """The configuration does not allow it; once that is mended, it is tried again by itself."""


class CredentialsRefused(Misconfigured):
    """The far side does not accept the configured credentials."""

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
    """Base class for all errors that Tocsin raises intentionally."""


class OperatorError(TocsinError):
    """An error that an operator can correct. The message says where and how to correct it."""

    exit_status = 2
    """The exit status of a command that ends with this error."""


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
    """The request contains an invalid value."""


class NotFoundError(RequestError):
    """The record that the request names does not exist."""


class ConflictError(RequestError):
    """The record's state does not allow the request."""


class AccessDeniedError(RequestError):
    """The caller is known, but may not do this."""


class NameTakenError(TocsinError):
    """An object with this name exists."""


CANNOT_CONNECT = "cannot connect"
"""In the reason of a failure: no connection was made, whatever was to be sent."""


class PluginFailure(TocsinError):  # noqa: N818 - the names are what a plugin says, not what it is
    """A plugin's failure. Raise one of the subclasses."""


class InvestigationFailed(PluginFailure):
    """An investigation could not produce a report. The message says why."""


class TryLater(PluginFailure):
    """A temporary failure. `after` is the delay that the remote system requested, if any.

    If `throttled` is true, the remote system is overloaded, and all deliveries to it wait. If
    `unsent` is true, nothing was sent, and the call does not count as an attempt. If `partly` is
    true, part of the delivery arrived, so the remote system is working.
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
    """The remote system returned an internal error or an invalid response.

    If a `WindowedProvider` keeps getting this error for only some seconds of a window, it reports
    these seconds as lost and continues with the others.
    """


class Refused(PluginFailure):
    """A permanent failure: a retry would also fail.

    `status` and `response` come from the remote system.

    If `unwanted` is true, the remote system does not want further deliveries, and Tocsin disables
    the destination.
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
        """Whether the remote system reports that the object does not exist."""
        return self.status == HTTPStatus.NOT_FOUND


class Misconfigured(Refused):
    """The configuration does not allow the operation.

    After an operator corrects the configuration, Tocsin retries.
    """


class CredentialsRefused(Misconfigured):
    """The remote system does not accept the configured credentials."""

"""Contract tests: derive from one class, say what is yours, and pytest runs them.

`ProviderConformance` is for providers of an HTTP API, `FileProviderConformance` for those that
follow files, `PushProviderConformance` for those that are sent to, and `EnricherConformance` for
enrichers. A rule that need not be kept is replaced by `exempt`, with the reason.
"""

from tocsin.testing.conformance.rules import exempt
from tocsin.testing.conformance.suites import (
    EnricherConformance,
    FileProviderConformance,
    ProviderConformance,
    PushProviderConformance,
)

__all__ = [
    "EnricherConformance",
    "FileProviderConformance",
    "ProviderConformance",
    "PushProviderConformance",
    "exempt",
]

"""Contract tests for providers: derive from one class, say what is yours, and pytest runs them.

`ProviderConformance` is for providers of an HTTP API, `FileProviderConformance` for those that
follow files, `PushProviderConformance` for those that are sent to. A rule that a provider need not
keep is replaced by `exempt`, with the reason.
"""

from tocsin.testing.conformance.rules import exempt
from tocsin.testing.conformance.suites import (
    FileProviderConformance,
    ProviderConformance,
    PushProviderConformance,
)

__all__ = ["FileProviderConformance", "ProviderConformance", "PushProviderConformance", "exempt"]

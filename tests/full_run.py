"""Sizes and parameters that only `make test-full` takes."""

from __future__ import annotations

import hypothesis
import pytest

postgresql_in_full = pytest.mark.parametrize(
    "database_url", ["sqlite", pytest.param("postgresql", marks=pytest.mark.full)], indirect=True
)
"""For tests whose parts run on both databases in any case."""


def scale_examples(most: int) -> int:
    """Return how many examples to look at: `most` in the full run, a third in the ordinary one."""
    return most if hypothesis.settings.default.max_examples >= 100 else most // 3

"""The example provider, which is no part of Tocsin, and what the broken ones are made with."""

from __future__ import annotations

import sys
from pathlib import Path

_EXAMPLE = Path(__file__).parents[3] / "examples" / "tocsin-example-provider"
sys.path += [str(_EXAMPLE / "src"), str(_EXAMPLE / "tests"), str(Path(__file__).parent)]

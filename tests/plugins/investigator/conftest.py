"""Shared fixtures: a world to investigate, and an investigation of it."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))

"""Scoring: how bad it is, what that is called, and how sure it is."""

from tocsin_plugins.investigator.scoring.judging import confidence_in, verdict_of
from tocsin_plugins.investigator.scoring.points import contributions, total

__all__ = ["confidence_in", "contributions", "total", "verdict_of"]

"""Scoring: how bad it is, what that is called, and how sure it is."""

from tocsin_plugins.investigator.scoring.judging import judge_confidence, judge_verdict
from tocsin_plugins.investigator.scoring.points import score_findings, total_score

__all__ = ["judge_confidence", "judge_verdict", "score_findings", "total_score"]

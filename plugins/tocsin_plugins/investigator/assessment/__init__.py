"""Assessment of findings: risk score, verdict and confidence."""

from tocsin_plugins.investigator.assessment.points import score_worst, total_score
from tocsin_plugins.investigator.assessment.verdict import (
    Conclusion,
    judge_confidence,
    judge_verdict,
)

__all__ = ["Conclusion", "judge_confidence", "judge_verdict", "score_worst", "total_score"]

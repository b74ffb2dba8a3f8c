"""Calibration of the score with the written cases."""

import pytest
from investigator_cases import CASES
from investigator_world import investigate, kinds, statements


@pytest.mark.parametrize("truth", CASES, ids=lambda truth: truth.name)
async def test_a_case_of_known_truth_scores_within_its_band(truth):
    report, client = await investigate(truth.world, truth.query)
    assert truth.least <= report.risk_score <= truth.most, report.contributions
    assert report.verdict is truth.verdict
    assert truth.finding is None or truth.finding in kinds(report)
    cited = {reference for statement in statements(report) for reference in statement.evidence}
    assert cited <= client.references

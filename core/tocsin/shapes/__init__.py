"""Shapes of records, the contracts they are compared with, and the drift between both.

A shape is the paths and types of a record, without its values.
"""

from tocsin.shapes.contract import RecordContract
from tocsin.shapes.drift import DRIFT_PERIOD, DriftProblem, FieldDrift, compare_samples, find_drift
from tocsin.shapes.history import ShapeHistory
from tocsin.shapes.samples import ShapeRecorder, ShapeSample, read_shape

__all__ = [
    "DRIFT_PERIOD",
    "DriftProblem",
    "FieldDrift",
    "RecordContract",
    "ShapeHistory",
    "ShapeRecorder",
    "ShapeSample",
    "compare_samples",
    "find_drift",
    "read_shape",
]

"""Estimates from a release: frequencies, heavy hitters, means, quantiles, and the reach of audiences."""

from hushuffle.estimation.frequency import (
    estimate,
    estimate_values,
    keep_significant,
    predicted_standard_error,
    project_on_simplex,
    standard_errors_at,
)
from hushuffle.estimation.heavy_hitters import HeavyHitters, heavy_hitters
from hushuffle.estimation.poisoning import PoisoningGain, poisoning_gain, refused

__all__ = [
    "HeavyHitters",
    "PoisoningGain",
    "estimate",
    "estimate_values",
    "heavy_hitters",
    "keep_significant",
    "poisoning_gain",
    "predicted_standard_error",
    "project_on_simplex",
    "refused",
    "standard_errors_at",
]

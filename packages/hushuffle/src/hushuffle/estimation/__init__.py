"""Estimates from a release: frequencies, heavy hitters, means, quantiles, and the reach of audiences."""

from hushuffle.estimation.frequency import (
    HeavyHitters,
    estimate,
    estimate_values,
    heavy_hitters,
    keep_significant,
    predicted_standard_error,
    project_on_simplex,
    standard_errors_at,
)
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

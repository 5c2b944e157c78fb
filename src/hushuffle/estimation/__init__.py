"""What the analyst reads from a release: frequencies, heavy hitters, reach."""

from hushuffle.estimation.frequency import estimate, keep_significant, predicted_standard_error, project_on_simplex
from hushuffle.estimation.heavy_hitters import HeavyHitters, heavy_hitters

__all__ = [
    "HeavyHitters",
    "estimate",
    "heavy_hitters",
    "keep_significant",
    "predicted_standard_error",
    "project_on_simplex",
]

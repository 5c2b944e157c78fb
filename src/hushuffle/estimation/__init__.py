"""What the analyst reads from the release."""

from hushuffle.estimation.frequency import (
    estimate,
    keep_significant,
    predicted_standard_error,
    project_on_simplex,
)

__all__ = ["estimate", "keep_significant", "predicted_standard_error", "project_on_simplex"]

"""What people come to do: the only place where analysis, estimation and specification meet."""

from hushuffle.workflows.assess import assess
from hushuffle.workflows.calibrate import Choice, calibrate

__all__ = ["Choice", "assess", "calibrate"]

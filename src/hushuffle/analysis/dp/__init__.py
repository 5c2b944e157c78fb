"""Central differential privacy of what the shuffler releases."""

from hushuffle.analysis.dp.central import delta, epsilon, local_epsilon

__all__ = ["delta", "epsilon", "local_epsilon"]

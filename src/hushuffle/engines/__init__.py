"""Run a plan over tables, as a simulation."""

from hushuffle.engines.aggregate import AggregateRun, run_aggregate
from hushuffle.engines.clustering import KMeansRun, plain_k_means, rand_index, run_k_means
from hushuffle.engines.simulation import Exchange, exchange

__all__ = [
    "AggregateRun",
    "Exchange",
    "KMeansRun",
    "exchange",
    "plain_k_means",
    "rand_index",
    "run_aggregate",
    "run_k_means",
]

"""Run and study a query plan on tables."""

from hushuffle.queries.aggregate import AggregateRun, run_aggregate
from hushuffle.queries.clustering import KMeansRun, plain_k_means, rand_index, run_k_means
from hushuffle.queries.exchange import Exchange, exchange

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

"""Queries: one file for each type, with its plan and the work of its nodes; studies of a plan."""

from hushuffle_network.queries.aggregate import Aggregate, AggregateQuery
from hushuffle_network.queries.aggregate_run import AggregateRun, run_aggregate
from hushuffle_network.queries.exchange import Exchange, exchange
from hushuffle_network.queries.k_means import KMeans, KMeansQuery
from hushuffle_network.queries.k_means_run import KMeansRun, plain_k_means, rand_index, run_k_means
from hushuffle_network.queries.specification import PlanSpecification, load_plan, parse_plan

__all__ = [
    "Aggregate",
    "AggregateQuery",
    "AggregateRun",
    "Exchange",
    "KMeans",
    "KMeansQuery",
    "KMeansRun",
    "PlanSpecification",
    "exchange",
    "load_plan",
    "parse_plan",
    "plain_k_means",
    "rand_index",
    "run_aggregate",
    "run_k_means",
]

"""Query plans as data: the steps of a plan, their meaning and their costs."""

from hushuffle.plans.aggregates import GroupingQuery, GroupingSet, GroupStatistics, generate_table, group_statistics
from hushuffle.plans.builders import aggregate, k_means, messages
from hushuffle.plans.centroids import CentroidNoise
from hushuffle.plans.cluster import MOST_SCRAMBLERS, Cluster, Traffic, TrafficNumbers
from hushuffle.plans.drawing import Drawing, describe, layout, svg
from hushuffle.plans.plan import Costs, Data, Edge, Plan, Release, cluster_costs, plan_costs, sources_needed, use_chance
from hushuffle.plans.result_noise import ResultNoise
from hushuffle.plans.stages import Stage, staged

__all__ = [
    "MOST_SCRAMBLERS",
    "CentroidNoise",
    "Cluster",
    "Costs",
    "Data",
    "Drawing",
    "Edge",
    "GroupStatistics",
    "GroupingQuery",
    "GroupingSet",
    "Plan",
    "Release",
    "ResultNoise",
    "Stage",
    "Traffic",
    "TrafficNumbers",
    "aggregate",
    "cluster_costs",
    "describe",
    "generate_table",
    "group_statistics",
    "k_means",
    "layout",
    "messages",
    "plan_costs",
    "sources_needed",
    "staged",
    "svg",
    "use_chance",
]

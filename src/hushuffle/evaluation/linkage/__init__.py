"""Linkage: whose reports are these? Markov models of past events against (randomized) later ones."""

from hushuffle.evaluation.linkage.attackers import Knowledge, Scene, Split, scene
from hushuffle.evaluation.linkage.hidden import report_scores
from hushuffle.evaluation.linkage.matching import (
    candidates,
    genuine_scores,
    hit_rate,
    impostor_scores,
    miss_rate,
    ranks,
)
from hushuffle.evaluation.linkage.plain import trace_scores
from hushuffle.evaluation.linkage.profiles import FLOOR, MarkovProfiles, train
from hushuffle.evaluation.linkage.reports import TraceReports, randomize

__all__ = [
    "FLOOR",
    "Knowledge",
    "MarkovProfiles",
    "Scene",
    "Split",
    "TraceReports",
    "candidates",
    "genuine_scores",
    "hit_rate",
    "impostor_scores",
    "miss_rate",
    "randomize",
    "ranks",
    "report_scores",
    "scene",
    "trace_scores",
    "train",
]

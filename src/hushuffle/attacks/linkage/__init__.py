"""Linkage attacks: match reports to users by Markov models, or numbers of visits, learned from past events."""

from hushuffle.attacks.linkage.hidden import report_scores
from hushuffle.attacks.linkage.matching import candidates, genuine_scores, hit_rate, impostor_scores, miss_rate, ranks
from hushuffle.attacks.linkage.profiles import (
    FLOOR,
    SIMILARITIES,
    MarkovProfiles,
    Similarity,
    trace_scores,
    train,
    visit_scores,
)
from hushuffle.attacks.linkage.reports import Knowledge, Scene, Split, TraceReports, randomize, scene

__all__ = [
    "FLOOR",
    "SIMILARITIES",
    "Knowledge",
    "MarkovProfiles",
    "Scene",
    "Similarity",
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
    "visit_scores",
]

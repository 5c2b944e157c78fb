"""Linkage attacks: match reports to users by Markov models, or numbers of visits, learned from past events."""

from hushuffle.attacks.linkage.profiles import (
    FLOOR,
    SIMILARITIES,
    MarkovProfiles,
    Similarity,
    report_scores,
    trace_scores,
    train,
    visit_scores,
)
from hushuffle.attacks.linkage.reports import (
    Knowledge,
    Scene,
    Split,
    TraceReports,
    candidates,
    genuine_scores,
    hit_rate,
    impostor_scores,
    miss_rate,
    randomize,
    ranks,
    scene,
)

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

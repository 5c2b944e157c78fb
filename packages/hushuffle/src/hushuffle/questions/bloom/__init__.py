"""Bloom filters with flipped bits and shuffled columns: central epsilon, its calibration, and signal-to-noise ratios.

A column is one position of all publishers' filters; a person sets one column for each hash function.
`epsilon` holds for all datasets. `published_pair_epsilon`, `pair_epsilon` and `filling_epsilon` hold only for the
datasets in their descriptions. The `evaluate_privacy_for_...` functions simulate epsilon, as described in the technical
details of the buffling package. Signal-to-noise ratios are in `snr`. `views_epsilon` is for columns without flips: the
shuffler adds dummies to the counts that it releases.
"""

from hushuffle.questions.bloom import transition as snr
from hushuffle.questions.bloom.plan_views import ViewPlan, plan_views
from hushuffle.questions.bloom.privacy import (
    FlipProbability,
    epsilon,
    estimate_flip_prob,
    filling_epsilon,
    guarantee,
    pair_epsilon,
    published_pair_epsilon,
)
from hushuffle.questions.bloom.simulation import (
    SimulatedEpsilon,
    evaluate_gauss_continued_fraction,
    evaluate_privacy_for_bloom_filter,
    evaluate_privacy_for_one_bloom_filter,
    ratio_of_hypergeometric_mgf,
)
from hushuffle.questions.bloom.transition import ones_matrix, transition_matrix
from hushuffle.questions.bloom.views import views_delta, views_epsilon

__all__ = [
    "FlipProbability",
    "SimulatedEpsilon",
    "ViewPlan",
    "epsilon",
    "estimate_flip_prob",
    "evaluate_gauss_continued_fraction",
    "evaluate_privacy_for_bloom_filter",
    "evaluate_privacy_for_one_bloom_filter",
    "filling_epsilon",
    "guarantee",
    "ones_matrix",
    "pair_epsilon",
    "plan_views",
    "published_pair_epsilon",
    "ratio_of_hypergeometric_mgf",
    "snr",
    "transition_matrix",
    "views_delta",
    "views_epsilon",
]

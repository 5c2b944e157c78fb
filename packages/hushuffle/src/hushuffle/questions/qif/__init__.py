"""Quantitative information flow: how well an adversary guesses one person's value.

`vulnerability` is the probability of a right guess after the release, and `prior` is the probability before it.
`iid_vulnerability` is for an adversary who knows the frequencies of the values. `max_load` contains the combinatorics
for the uninformed adversary. For a few people, channels are available in exact rationals, with leakage, capacities,
hyper-distributions and refinement (with a proof) for any prior and gain function.
"""

from hushuffle.numerics.max_load import expected_max_load as max_load
from hushuffle.questions.qif.bounds import gain_vulnerability
from hushuffle.questions.qif.channels import (
    datasets,
    histograms,
    merge_proportional_columns,
    noise,
    noise_then_reduced_shuffle,
    noise_then_shuffle,
    reduced_noise,
    reduced_shuffle,
    shuffle,
    shuffle_then_noise,
)
from hushuffle.questions.qif.gain import (
    distance_gain,
    explicit_prior,
    identity_gain,
    iid_prior,
    posterior_vulnerability,
    prior_vulnerability,
    single_target_gain,
    target_gain,
    tries_gain,
    uniform_prior,
)
from hushuffle.questions.qif.guessing import asymptotic_vulnerability, prior, quick_vulnerability, vulnerability
from hushuffle.questions.qif.iid import iid_prior_vulnerability, iid_vulnerability
from hushuffle.questions.qif.leakage import (
    Hyper,
    additive_leakage,
    bayes_capacity,
    hyper,
    multiplicative_leakage,
    parallel,
    shannon_capacity,
    shannon_leakage,
)
from hushuffle.questions.qif.refinement import Refinement, Separation, equivalent, refines

__all__ = [
    "Hyper",
    "Refinement",
    "Separation",
    "additive_leakage",
    "asymptotic_vulnerability",
    "bayes_capacity",
    "datasets",
    "distance_gain",
    "equivalent",
    "explicit_prior",
    "gain_vulnerability",
    "histograms",
    "hyper",
    "identity_gain",
    "iid_prior",
    "iid_prior_vulnerability",
    "iid_vulnerability",
    "max_load",
    "merge_proportional_columns",
    "multiplicative_leakage",
    "noise",
    "noise_then_reduced_shuffle",
    "noise_then_shuffle",
    "parallel",
    "posterior_vulnerability",
    "prior",
    "prior_vulnerability",
    "quick_vulnerability",
    "reduced_noise",
    "reduced_shuffle",
    "refines",
    "shannon_capacity",
    "shannon_leakage",
    "shuffle",
    "shuffle_then_noise",
    "single_target_gain",
    "target_gain",
    "tries_gain",
    "uniform_prior",
    "vulnerability",
]

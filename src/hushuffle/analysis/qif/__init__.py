"""Quantitative information flow: how well a guesser names one person's value.

`vulnerability` is the probability of a right guess after the release, `prior` the one before.
`max_load` is the combinatorics behind the uninformed adversary. For a few people the channels themselves can
be written down in exact rationals and looked at for any prior and gain.
"""

from hushuffle.analysis.qif.channels import (
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
from hushuffle.analysis.qif.gain import (
    identity_gain,
    posterior_vulnerability,
    prior_vulnerability,
    single_target_gain,
    uniform_prior,
)
from hushuffle.analysis.qif.guessing import asymptotic_vulnerability, prior, vulnerability
from hushuffle.laws.max_load import expected_max_load as max_load

__all__ = [
    "asymptotic_vulnerability",
    "datasets",
    "histograms",
    "identity_gain",
    "max_load",
    "merge_proportional_columns",
    "noise",
    "noise_then_reduced_shuffle",
    "noise_then_shuffle",
    "posterior_vulnerability",
    "prior",
    "prior_vulnerability",
    "reduced_noise",
    "reduced_shuffle",
    "shuffle",
    "shuffle_then_noise",
    "single_target_gain",
    "uniform_prior",
    "vulnerability",
]

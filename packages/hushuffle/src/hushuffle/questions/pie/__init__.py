"""Re-identification: personal information entropy (PIE).

The re-identification adversary knows how values depend on persons (in the worst case exactly), sees a single
pseudonymised report, and names its sender. Results in bits are mutual informations I(U;Y) between person U and report
Y; errors are probabilities of naming the wrong person. A shuffler does not change these results, since it only makes
the reports pseudonymous.

`alpha` and `bayes_error` are exact for randomized response, bounds for local hashing, and defined for any finite
channel. `ldp_alpha`, `rr_alpha`, `hashing_alpha` and `fano_error` are the published bounds. `calibrate` returns, for
each of these bounds, the noise that meets a target error, and the resulting standard error.
"""

from hushuffle.questions.pie.calibration import (
    Route,
    best_hashing_for_error,
    best_hashing_for_theta,
    calibrate,
    epsilon_for_alpha,
    epsilon_for_error,
    variance_by_buckets,
)
from hushuffle.questions.pie.exact import (
    alpha,
    bayes_error,
    composed_alpha,
    composed_error,
    contracted_alpha,
    contraction,
)
from hushuffle.questions.pie.published import (
    alpha_for_error,
    fano_error,
    hashing_alpha,
    ldp_alpha,
    published_alpha,
    rr_alpha,
)

__all__ = [
    "Route",
    "alpha",
    "alpha_for_error",
    "bayes_error",
    "best_hashing_for_error",
    "best_hashing_for_theta",
    "calibrate",
    "composed_alpha",
    "composed_error",
    "contracted_alpha",
    "contraction",
    "epsilon_for_alpha",
    "epsilon_for_error",
    "fano_error",
    "hashing_alpha",
    "ldp_alpha",
    "published_alpha",
    "rr_alpha",
    "variance_by_buckets",
]

"""Re-identification: personal information entropy (PIE).

The adversary knows the people well (in the worst case: exactly how values depend on persons), sees
pseudonymised reports, each on its own, and wants to know whose a report is. Figures in bits are mutual
informations I(U;Y) between person U and report Y; figures of error are probabilities of naming the wrong
person. A shuffler changes none of them: it is what makes the reports pseudonymous.

`alpha` and `bayes_error` are exact for randomized response, bounds for local hashing, and read any finite channel;
`ldp_alpha`, `rr_alpha`, `hashing_alpha` and `fano_error` are the published bounds. `calibrate` says what noise each of
these proofs asks for, and what that costs in accuracy.
"""

from hushuffle.questions.pie.buckets import best_hashing_for_error, best_hashing_for_theta, variance_by_buckets
from hushuffle.questions.pie.calibration import Route, calibrate, epsilon_for_alpha, epsilon_for_error
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

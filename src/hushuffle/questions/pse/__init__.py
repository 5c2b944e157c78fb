"""Identifiability of people from matching scores: personal identification system entropy (PSE), in bits.

An adversary scores how well a report matches what they know of each person. PSE = I(U;S), what the n scores say
about whose the report is, is at most PIE, whatever the matcher. For scores that are independent, of law f_G for the
right person and f_I for others, PSE = D(f_G || f_I) - D(law of S || f_I^n): it grows with n towards the divergence, and
is at most min(log2 n, D). The functions here estimate the divergence D: compare it with a promised alpha only for
n of many more than 2^D people. Whether higher or lower scores are better matches does not matter: only the laws count.
"""

from hushuffle.questions.pse.divergence import Trend, from_matrix, kl_divergence, matrix_trend, trend
from hushuffle.questions.pse.neighbours import gaussian_divergence, knn_divergence, plug_in, score_counts

__all__ = [
    "Trend",
    "from_matrix",
    "gaussian_divergence",
    "kl_divergence",
    "knn_divergence",
    "matrix_trend",
    "plug_in",
    "score_counts",
    "trend",
]

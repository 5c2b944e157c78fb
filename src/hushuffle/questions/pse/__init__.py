"""Identifiability of people from matching scores: personal identification system entropy (PSE), in bits.

A matcher scores how well a report matches the adversary's knowledge of each person. PSE = I(U;S) is the information of
the n scores S about the report's sender U, and is at most PIE for every matcher. For independent scores of distribution
f_G for the sender and f_I for others, PSE = D(f_G || f_I) - D(distribution of S || f_I^n). It grows with n towards the
divergence D = D(f_G || f_I), and is at most min(log2 n, D). The functions here estimate D; compare it with a guaranteed
alpha only if n is much larger than 2^D. Higher or lower scores may be the better matches.
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

"""Identifiability of people from matching scores: personal identification system entropy (PSE), in bits.

A matcher scores how well a report matches the adversary's knowledge of each person. PSE = I(U;S) is the information of
the n scores S about the report's sender U. It is at most PIE for every matcher. Let scores be independent, with
distribution f_G for the sender and f_I for others. Then PSE = D(f_G || f_I) - D(distribution of S || f_I^n). As n
grows, PSE rises to D = D(f_G || f_I); it is at most min(log2 n, D). The functions here estimate D; compare D with a
guaranteed PIE only if n is much larger than 2^D. Better matches may have higher or lower scores.
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

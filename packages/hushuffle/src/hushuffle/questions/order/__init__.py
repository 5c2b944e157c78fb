"""Privacy of the order of release: how well records can be linked to people if a shuffler moves records only a little.

A group contains the people whose records must not be distinguished. A Mallows shuffle about a reference order ensures
that exchanging records inside a group changes the probability of any release by a factor of at most e**alpha, where
alpha = theta * sensitivity. `kendall_sensitivity` is exact; `published_sensitivity` is the bound of Meehan et al. 2022.
"""

from hushuffle.mechanisms.shufflers import sample_mallows
from hushuffle.model.groups import Groups
from hushuffle.questions.order.displacement import Displacement, displacement, mean_inversions
from hushuffle.questions.order.groups import column_groups, nearest_groups, on_sphere, path_groups, radius_groups
from hushuffle.questions.order.guarantees import (
    composed_alpha,
    findings,
    inferential_loss,
    mallows_law,
    mixed_alpha,
    posterior_odds,
    posterior_probability,
    reidentification,
)
from hushuffle.questions.order.preservation import preservation, preserved_share
from hushuffle.questions.order.reference import reference_order
from hushuffle.questions.order.sensitivity import (
    alpha_for_groups,
    alpha_for_theta,
    everybody_alpha,
    kendall_sensitivity,
    published_sensitivity,
    sensitivities,
    sensitivity,
    theta_for_alpha,
    width,
    widths,
)

__all__ = [
    "Displacement",
    "Groups",
    "alpha_for_groups",
    "alpha_for_theta",
    "column_groups",
    "composed_alpha",
    "displacement",
    "everybody_alpha",
    "findings",
    "inferential_loss",
    "kendall_sensitivity",
    "mallows_law",
    "mean_inversions",
    "mixed_alpha",
    "nearest_groups",
    "on_sphere",
    "path_groups",
    "posterior_odds",
    "posterior_probability",
    "preservation",
    "preserved_share",
    "published_sensitivity",
    "radius_groups",
    "reference_order",
    "reidentification",
    "sample_mallows",
    "sensitivities",
    "sensitivity",
    "theta_for_alpha",
    "width",
    "widths",
]

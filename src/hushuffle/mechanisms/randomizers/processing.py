"""Proven cases in which a report distribution is another report distribution with additional noise."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hushuffle.mechanisms.randomizers.report_law import OneHot, ReportLaw


def is_processing(noisier: ReportLaw, law: ReportLaw) -> bool:
    """Return whether post-processing provably turns reports and dummies of `law` into those of `noisier`.

    False means that no such post-processing exists, or that there is no proof of it.

    Source: docs/theory/more-and-less.md, Theorem 2.

    >>> from hushuffle import RandomizedResponse
    >>> more, less = (RandomizedResponse(k=3, epsilon=epsilon).law() for epsilon in (1.0, 2.0))
    >>> is_processing(more, less), is_processing(less, more)
    (True, False)
    """
    if law.one_hot is not None and noisier.one_hot is not None:
        return law.one_hot.k == noisier.one_hot.k and _bits(noisier.one_hot, law.one_hot)
    alike = law.classes is not None and law.classes == noisier.classes
    return alike and noisier.told is not None and law.told is not None and noisier.told <= law.told


def averages_to_dummies(law: ReportLaw) -> bool:
    """Return whether a report of a uniformly random value provably has the same distribution as a dummy.

    Source: docs/theory/more-and-less.md, Theorem 3.
    """
    return law.symmetric is not None or (law.support is not None and law.support.disjoint and law.told is not None)


def _bits(noisier: OneHot, law: OneHot) -> bool:
    """Return whether one binary channel maps `law`'s two probabilities of a 1 to those of `noisier`."""
    slope = (noisier.kept - noisier.raised) / (law.kept - law.raised)
    from_zero = noisier.raised - slope * law.raised
    return from_zero >= 0 and from_zero + slope <= 1

"""Where two questions meet: the strong guesser and the total variation that the accountant computes."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

import hushuffle as hs


@settings(max_examples=30)
@given(epsilon_0=st.floats(0.05, 8), n=st.integers(1, 3000))
def test_the_strong_guesser_of_two_values_is_the_divergence_at_zero(epsilon_0: float, n: int) -> None:
    survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=epsilon_0), shuffler=hs.UniformShuffle(), n=n)
    vulnerability, delta = hs.qif.vulnerability(survey, adversary=hs.Strong()), hs.dp.delta(survey, epsilon=0.0)
    assert (1 + delta.lower) / 2 <= vulnerability.upper * (1 + 1e-9)
    assert vulnerability.lower <= (1 + delta.upper) / 2 * (1 + 1e-9)

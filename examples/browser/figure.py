"""The certified central epsilon of a survey, with numpy and scipy alone: what the page shows."""

import hushuffle as hs


def figure(k: int, n: int, epsilon: float, delta: float) -> str:
    """Return the bracket of the central epsilon of k-ary randomized response behind a uniform shuffle."""
    device = hs.RandomizedResponse(k=k, epsilon=epsilon)
    return str(hs.dp.epsilon(hs.Protocol(randomizer=device, shuffler=hs.UniformShuffle(), n=n), delta=delta))

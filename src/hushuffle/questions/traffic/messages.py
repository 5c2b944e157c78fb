"""What the targets of messages reveal: sampling and flooding alone, and behind a scrambler."""

from __future__ import annotations

from hushuffle import _checks
from hushuffle.curves.divergence import divergence
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import Convention, TargetSampling
from hushuffle.mechanisms.shufflers import Scrambler
from hushuffle.model import Bound
from hushuffle.model.citation import LADJEL


def sampling_epsilon(targets: int, sigma: float, flood: int = 0, *, convention: Convention = "uniform") -> Bound:
    """Return the epsilon (nats, pure) of one device that samples and floods, its sender seen: exact.

    ln(1 + (1 - sigma) T / (sigma (d + 1))) in the uniform convention, d = `flood` <= T - 2; 0 for a broadcast.
    Relation: replace the message's own target.

    Args:
        targets: number of targets T, >= 2.
        sigma: probability that the target is drawn anew.
        flood: further messages, to distinct other targets.
        convention: "uniform" draws among all T, "exclusive" among the other T - 1.

    Raises:
        InvalidInputError: an argument out of range.

    Source: Ladjel, Anciaux, Bellet, Scerri (sampling and flooding); theory.md section 6.

    >>> print(sampling_epsilon(targets=20, sigma=0.2, flood=5))
    2.663 nats (exact)
    """
    sampling = TargetSampling(targets=targets, sigma=sigma, flood=flood, convention=convention)
    return Bound.exact(sampling.local_epsilon, unit="nats", sources=(LADJEL.at("sampling and flooding"),))


def scrambler_epsilon(
    targets: int,
    sources: int,
    sigma: float,
    dummies: int,
    cap: int | None = None,
    *,
    delta: float = 0.0,
    convention: Convention = "uniform",
) -> Bound:
    """Return a certified bracket of the epsilon (nats) of n sources behind a scrambler, at `delta`.

    Relation: replace one source's own target. The adversary knows the own targets of all other sources and sees how
    many messages each target gets. The same figure as `hushuffle.dp.epsilon` of the protocol.

    Args:
        targets: number of targets T, >= 2.
        sources: number of sources n that share the scrambler.
        sigma: probability that a source draws its target anew.
        dummies: number of dummies d, to uniform targets.
        cap: most messages for one target: n, or None. With a cap the pure figure is exact for d < n and an upper
            bound beyond.
        delta: in [0, 1).
        convention: "uniform" draws among all T, "exclusive" among the other T - 1.

    Raises:
        InvalidInputError: an argument out of range.

    Source: theory.md sections 1.2, 1.3 and 6; the proof for a cap is in the documentation.

    >>> print(scrambler_epsilon(targets=3, sources=5, sigma=0.5, dummies=3, cap=5))
    1.233 nats (exact)
    >>> print(scrambler_epsilon(targets=20, sources=2000, sigma=0.2, dummies=50, delta=1e-6))
    0.9555 to 1.095 nats (certified bracket)
    """
    level = _checks.probability("delta", delta, high_open=True)
    sampling = TargetSampling(targets=targets, sigma=sigma, convention=convention)
    protocol = Protocol(randomizer=sampling, shuffler=Scrambler(dummies=dummies, cap=cap), n=sources)
    return divergence(protocol).epsilon(level)

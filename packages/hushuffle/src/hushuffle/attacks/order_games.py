"""Games about the order of release: find the reports of a household, or detect an exchange of reports in a group."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from hushuffle._checks import Floats, Integers
from hushuffle.attacks.detection import rate_interval
from hushuffle.attacks.games import Game, Named, Terms, enough, refuse, tell_apart
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.shufflers import MallowsShuffle, Reveals
from hushuffle.questions import order
from hushuffle.questions.order.sensitivity import ranks

_MESSAGES: Final = 20_000_000
"""Largest number of reports in all simulated releases: a Mallows order takes longer to draw than a uniform shuffle."""


def order_games(protocol: Protocol, groups: order.Groups | None = None, *, household: int = 2) -> list[Named]:
    """Return the games to find a household's reports, and to detect an exchange inside a group.

    The adversary knows all values. It wins the household game if more than half of the named places are right, with the
    bound `order.reidentification` for the smallest group. The bound of the exchange game is 1/(1 + e**-alpha).

    Source: Meehan et al. 2022, Theorems 4.1 and 4.2; docs/theory/order.md, Theorems 6 and 7.

    >>> from hushuffle import RandomizedResponse
    >>> from hushuffle.randomness import reproducible
    >>> shuffler = MallowsShuffle(reference=range(9), theta=0.2)
    >>> survey = Protocol(randomizer=RandomizedResponse(k=2, epsilon=0.5), shuffler=shuffler, n=9)
    >>> for name, play in order_games(survey, order.Groups.of([[2, 3, 4], range(9)]), household=1):
    ...     game = play(Terms(rng=reproducible(1)))
    ...     print(f"{name}: certified {game.certified.upper:.3f}, broken: {game.broken}")
    Pick out a household: certified 0.712, broken: False
    See an exchange in a group: certified 0.646, broken: False
    """
    named: list[Named] = [("Pick out a household", lambda terms: _household(protocol, groups, household, terms))]
    if groups is not None:
        named.append(("See an exchange in a group", lambda terms: _exchange(protocol, groups, terms)))
    return named


def _household(protocol: Protocol, groups: order.Groups | None, wanted: int, terms: Terms) -> Game:
    shuffler, mechanism, rng = protocol.shuffler, protocol.randomizer, terms.rng
    if protocol.reveals not in (Reveals.MULTISET, Reveals.NOISY_ORDER) or shuffler.expected_dummies:
        refuse("The household game was not played: its bound is known only for shuffled reports without dummies.")
    terms = _affordable(terms, 2 * protocol.n)
    members = _group(protocol, groups, 2 * wanted + 1)
    alpha = 0.0 if groups is None else _alpha(_mallows(protocol), members)
    certified = order.reidentification(alpha, epsilon=mechanism.local_epsilon, group=members.size, wanted=wanted)
    family, pair = members[:wanted], np.array([0, mechanism.inputs - 1])
    held = np.full(protocol.n, pair[1])
    held[family] = pair[0]
    weights, hits = _places(protocol, family, terms), 0
    for _ in range(terms.releases):
        # Whose report stands at each place: the shuffler does not look at what it moves.
        places = shuffler.release(np.arange(protocol.n), rng=rng)
        mine, other = mechanism.likelihoods(mechanism.randomize(held, rng=rng)[places], pair)
        with np.errstate(divide="ignore"):
            scores = weights * (mine / other)
        named = np.lexsort((rng.permutation(protocol.n), -scores))[:wanted]
        hits += 2 * int(np.count_nonzero(np.isin(places[named], family))) > wanted
    return Game(
        f"reports of {wanted:,} of {members.size:,} people" if wanted > 1 else "which report a person sent",
        "knows every person's value",
        success=rate_interval(hits, terms.releases, terms.confidence),
        certified=certified,
    )


def _places(protocol: Protocol, family: Integers, terms: Terms) -> Floats:
    """Return how often each place holds a household report, learned from other releases and smoothed."""
    inside = np.zeros(protocol.n, dtype=np.bool_)
    inside[family] = True
    counts = np.zeros(protocol.n)
    for _ in range(terms.releases):
        counts += inside[protocol.shuffler.release(np.arange(protocol.n), rng=terms.rng)]
    mean, spread = counts.mean(), counts.var()
    # Counts at places that are all alike spread by their mean: what spreads no more says nothing (James and Stein).
    shrinkage = max(0.0, 1 - mean / spread) if spread > 0 else 0.0
    weights: Floats = np.maximum(mean + shrinkage * (counts - mean), 1e-9)
    return weights


def _exchange(protocol: Protocol, groups: order.Groups, terms: Terms) -> Game:
    """Play the exchange game: were the reports of a group in order or reversed? All reports are different and known."""
    shuffler, members = _mallows(protocol), _group(protocol, groups, 2)
    terms = _affordable(terms, protocol.n * members.size)
    alpha, reference, rank = _alpha(shuffler, members), shuffler.reference, ranks(shuffler.reference)
    reversed_ = np.arange(protocol.n)
    reversed_[members] = members[::-1]

    def run(world: int) -> float:
        sent = reversed_ if world else np.arange(protocol.n)
        listed = shuffler.release(sent, rng=terms.rng)[reference]
        original, exchanged = (_far(shuffler, rank[people], rank[members]) for people in (listed, reversed_[listed]))
        return shuffler.theta * (original - exchanged)

    return Game(
        "whether the reports within a group were exchanged",
        "knows every report and its sender, but not whether the exchange took place",
        success=tell_apart(run, terms),
        certified=order.posterior_probability(alpha, prior=0.5),
    )


def _far(shuffler: MallowsShuffle, tau: Integers, own: Integers) -> float:
    """Return the distance of an order of ranks, up to a constant under exchanges of the ranks `own`."""
    if shuffler.distance == "hamming":
        return float(np.count_nonzero(tau != np.arange(tau.size)))
    place = np.argsort(tau)  # of each rank
    wrong = (own[:, np.newaxis] < np.arange(tau.size)) != (place[own][:, np.newaxis] < place)
    return float(wrong.sum() - wrong[:, own].sum() / 2)  # pairs of members are listed twice


def _affordable(terms: Terms, each: int) -> Terms:
    """Return terms with fewer releases if one release takes as much work as `each` messages."""
    affordable = replace(terms, releases=min(terms.releases, _MESSAGES // each))
    enough(affordable.releases, each)
    return affordable


def _mallows(protocol: Protocol) -> MallowsShuffle:
    assert isinstance(protocol.shuffler, MallowsShuffle)  # no other has groups
    return protocol.shuffler


def _alpha(shuffler: MallowsShuffle, members: Integers) -> float:
    bound = order.alpha_for_theta(
        shuffler.theta, reference=shuffler.reference, groups=[members], distance=shuffler.distance
    )
    return bound.upper


def _group(protocol: Protocol, groups: order.Groups | None, least: int) -> Integers:
    """Return the smallest group of at least `least` people, in the public order if there is one."""
    candidates = [groups[place] for place in range(len(groups))] if groups is not None else [np.arange(protocol.n)]
    large = [members for members in candidates if members.size >= least]
    if not large:
        refuse(f"The game was not played: no group has {least:,} people.")
    members = min(large, key=len)
    shuffler = protocol.shuffler
    return members[np.argsort(ranks(shuffler.reference)[members])] if isinstance(shuffler, MallowsShuffle) else members

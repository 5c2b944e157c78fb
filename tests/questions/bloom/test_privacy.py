"""Privacy of Bloom filters: one implementation for two names, exact for one filter, enumeration for small ones."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest

import hushuffle as hs
from hushuffle.curves.laws.flipped_pairs import AllAlike
from hushuffle.errors import InvalidInputError
from hushuffle.questions import bloom
from oracles import bloom_enumeration as oracle
from oracles.dp_enumeration import hockey_stick


@pytest.mark.parametrize(("filters", "bits", "p"), [(1, 300, 0.05), (2, 1000, 0.3), (5, 10**4, 0.2)])
def test_two_names_for_one_question(filters: int, bits: int, p: float) -> None:
    protocol = hs.Protocol(randomizer=hs.BitFlipping(width=filters, p=p), shuffler=hs.UniformShuffle(), n=bits)
    for delta in (0.0, 1e-3):
        assert bloom.epsilon(filters=filters, bits=bits, p=p, delta=delta) == hs.dp.epsilon(protocol, delta=delta)


def exact_epsilon(first: list[Fraction], second: list[Fraction], delta: float) -> float:
    """The smallest epsilon of a pair of laws, both directions, by bisection on rationals."""

    def divergence(epsilon: float) -> float:
        growth = Fraction(math.exp(epsilon))
        pairs = [*zip(first, second, strict=True)]
        return float(
            max(sum(max(a - growth * b, Fraction(0)) for a, b in way) for way in (pairs, [(b, a) for a, b in pairs]))
        )

    low, high = 0.0, 40.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if divergence(middle) > delta else (low, middle)
    return high if divergence(0.0) > delta else 0.0


@pytest.mark.parametrize(("bits", "p", "delta"), [(1, 0.1, 0.01), (6, 0.2, 1e-3), (12, 0.05, 1e-2), (12, 0.45, 0.01)])
def test_one_filter_over_all_fillings(bits: int, p: float, delta: float) -> None:
    laws = [oracle.filling_law(bits, ones, Fraction(p)) for ones in range(bits + 1)]
    pairs = [exact_epsilon(*pair, delta) for pair in itertools.pairwise(laws)]
    bound = bloom.epsilon(filters=1, bits=bits, p=p, delta=delta)
    assert bound.upper == pytest.approx(max(pairs), rel=1e-5, abs=1e-9)
    assert bound.lower == pytest.approx(max(pairs), rel=1e-5, abs=1e-9)
    for ones in range(bits + 1):
        near = [pairs[i] for i in (ones - 1, ones) if 0 <= i < bits]
        filling = bloom.filling_epsilon(bits=bits, p=p, delta=delta, ones=ones)
        assert filling.upper == pytest.approx(max(near), rel=1e-5, abs=1e-9)
        assert filling.lower == pytest.approx(max(near), rel=1e-5, abs=1e-9)


def test_the_published_example() -> None:
    bound = bloom.epsilon(filters=1, bits=10**5, p=0.05, delta=1e-3)
    assert 0.01377 < bound.lower <= bound.upper < 0.01378
    filling = bloom.filling_epsilon(bits=10**5, p=0.05, delta=1e-3, ones=25_000)
    assert 0.0137 < filling.upper <= bound.upper
    assert filling.width <= 1e-5 * filling.upper


@pytest.mark.parametrize(
    ("p", "bits", "epsilon", "published", "worst", "alike"),
    [
        (0.25, 3, 1.0, "0.1370", "0.1574", False),
        (0.25, 4, 1.0, "0.0949", "0.0970", False),
        (0.4, 2, 0.25, "0.0844", "0.0847", True),
        (0.4, 3, 0.5, "0.0125", "0.0132", True),
        (0.45, 3, 0.25, "0.0045", "0.0047", True),
    ],
)
def test_where_the_published_pair_is_not_the_worst(
    p: float, bits: int, epsilon: float, published: str, worst: str, alike: bool
) -> None:
    """The table of docs/explanation/adversaries.md#bloom-filters: all datasets of two filters."""
    growth, flip = Fraction(math.exp(epsilon)), Fraction(p)
    value, found, pair = oracle.worst(2, bits, flip, growth)
    seen = oracle.pair_delta(oracle.channel(2, flip), [0] * (bits - 1), (0, 3), growth)
    assert (f"{float(seen):.4f}", f"{float(value):.4f}") == (published, worst)
    assert pair[0] ^ pair[1] == 0b11
    assert (len(set(found)) == 1) == alike
    if alike:  # the others hold a third logo: 01 against 10, seen from theirs
        assert found[0] not in pair


def test_worse_than_the_published_pair_at_size() -> None:
    """Six filters: logos that differ in four of six bits, the other columns opposite in the remaining two."""
    epsilon, common = 1.0, {"width": 6, "flip": Fraction(0.145), "n": 10**5}
    published = AllAlike.of(**common, others=0, target=(0, 0b111111))  # type: ignore[arg-type]
    other = AllAlike.of(**common, others=0b111111, target=(0b000000, 0b001111))  # type: ignore[arg-type]
    assert published.upper(epsilon) < 0.995 * other.lower(epsilon)[0]


def test_pairs_at_one_logo() -> None:
    p, bits, delta = 0.25, 5, 0.02
    rows = oracle.channel(2, Fraction(p))
    for others, target in ((0, (0, 3)), (3, (0, 1))):
        bound = bloom.pair_epsilon(filters=2, bits=bits, p=p, delta=delta, target=target, others=others)
        at = [
            oracle.pair_delta(rows, [others] * (bits - 1), target, Fraction(math.exp(e)))
            for e in (bound.lower, bound.upper)
        ]
        assert at[1] <= delta <= at[0]
        assert bound.width <= 0.01 * bound.upper


def test_the_published_pair() -> None:
    pair = bloom.published_pair_epsilon(filters=6, bits=10**5, p=0.145, delta=1e-3)
    same = bloom.pair_epsilon(filters=6, bits=10**5, p=0.145, delta=1e-3, target=(63, 0))
    assert (pair.lower, pair.upper) == (same.lower, same.upper)
    whole = bloom.epsilon(filters=6, bits=10**5, p=0.145, delta=1e-3)
    assert pair.width <= 1e-3 * pair.upper
    assert pair.lower <= whole.lower * (1 + 1e-6)
    assert pair.upper <= whole.upper
    assert whole.upper <= 1.11 * pair.upper


def several_columns_delta(filters: int, bits: int, p: Fraction, growth: Fraction, hashes: int) -> float:
    """The worst divergence over all pairs of datasets that differ in at most `hashes` columns."""
    rows, size = oracle.channel(filters, p), 1 << filters
    laws = {data: oracle.release(rows, data) for data in itertools.combinations_with_replacement(range(size), bits)}
    worst = 0.0
    for first, second in itertools.permutations(laws, 2):
        shared = sum(min(first.count(logo), second.count(logo)) for logo in range(size))
        if bits - shared <= hashes:
            worst = max(worst, float(hockey_stick(laws[first], laws[second], growth)))
    return worst


@pytest.mark.parametrize(("filters", "bits", "p", "hashes"), [(1, 5, 0.3, 2), (1, 4, 0.2, 3), (2, 3, 0.4, 2)])
def test_what_one_person_touches_by_enumeration(filters: int, bits: int, p: float, hashes: int) -> None:
    delta = 0.05
    bound = bloom.epsilon(filters=filters, bits=bits, p=p, delta=delta, hashes=hashes)
    at_upper = several_columns_delta(filters, bits, Fraction(p), Fraction(math.exp(bound.upper)), hashes)
    at_lower = several_columns_delta(filters, bits, Fraction(p), Fraction(math.exp(bound.lower * 0.999)), hashes)
    assert at_upper <= delta <= at_lower


def test_hash_functions_compose() -> None:
    one = bloom.epsilon(filters=2, bits=10**4, p=0.25, delta=1e-3)
    three = bloom.epsilon(filters=2, bits=10**4, p=0.25, delta=1e-3, hashes=3)
    assert 3 * one.upper < three.lower <= three.upper <= 1.02 * three.lower
    each = three.upper / 3
    columns = hs.Protocol(randomizer=hs.BitFlipping(width=2, p=0.25), shuffler=hs.UniformShuffle(), n=10**4)
    grown = 1 + math.exp(each) + math.exp(2 * each)  # one column after the other
    assert 0.99e-3 < grown * hs.dp.delta(columns, epsilon=each).lower <= 1e-3
    pure = bloom.epsilon(filters=2, bits=10**4, p=0.25, delta=0.0, hashes=3)
    assert pure.upper == pytest.approx(6 * math.log(3), rel=1e-9)


def test_no_privacy_loss_left() -> None:
    """delta above the total variation: epsilon is 0."""
    assert bloom.epsilon(filters=1, bits=100, p=0.45, delta=0.2, hashes=2).upper == 0.0
    assert bloom.filling_epsilon(bits=100, p=0.45, delta=0.2, ones=3).upper == 0.0


def test_guarantees_say_what_they_are_per() -> None:
    column = bloom.guarantee(filters=1, bits=100, p=0.1, delta=1e-3)
    person = bloom.guarantee(filters=1, bits=100, p=0.1, delta=1e-3, hashes=4)
    assert (column.per, person.per) == ("column", "person")
    assert "up to 4 of the columns" in person.relation
    assert person.epsilon.upper > column.epsilon.upper


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"filters": 0}, "filters"),
        ({"filters": 63}, "filters"),
        ({"bits": 0}, "bits"),
        ({"p": 0.5}, "p"),
        ({"p": 0.0}, "p"),
        ({"delta": 1.0}, "delta"),
        ({"hashes": 11}, "hashes"),
    ],
)
def test_arguments_out_of_range(arguments: dict[str, object], message: str) -> None:
    whole: dict[str, object] = {"filters": 2, "bits": 10, "p": 0.1, "delta": 1e-3, **arguments}
    with pytest.raises(InvalidInputError, match=message):
        bloom.epsilon(**whole)  # type: ignore[arg-type]


def test_pairs_need_two_logos() -> None:
    with pytest.raises(InvalidInputError, match="two different"):
        bloom.pair_epsilon(filters=2, bits=10, p=0.1, delta=1e-3, target=(1, 1))
    with pytest.raises(InvalidInputError, match="others"):
        bloom.pair_epsilon(filters=2, bits=10, p=0.1, delta=1e-3, target=(1, 2), others=4)

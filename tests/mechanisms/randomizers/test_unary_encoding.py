from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.errors import InvalidInputError, UnsupportedProtocolError
from hushuffle.mechanisms.randomizers.unary_encoding import Encoding, OneHotReports
from hushuffle.numerics.exact import binomial
from oracles.one_hot import one_hot_rows

F = Fraction
CHANCES = [(F(1, 2), F(1, 4)), (F(3, 4), F(1, 4)), (F(9, 10), F(1, 50))]


def law(k: int, p: Fraction, q: Fraction) -> OneHotReports:
    return OneHotReports(k=k, own=p, raised=q)


@pytest.mark.parametrize("kind", ["symmetric", "optimized"])
@pytest.mark.parametrize("epsilon", [1e-7, 0.3, 1.0, 2.0, 7.0, 25.0])
def test_the_local_epsilon_is_that_of_the_thresholds_and_never_above_the_asked_one(
    kind: Encoding, epsilon: float
) -> None:
    encoding = hs.UnaryEncoding(k=9, epsilon=epsilon, encoding=kind)
    p, q = encoding.law().own, encoding.law().raised
    exact = p * (1 - q) / (q * (1 - p))
    assert encoding.local_epsilon == pytest.approx(math.log1p(float(exact - 1)), rel=1e-12)
    assert epsilon * (1 - 1e-7) - 1e-15 < encoding.local_epsilon <= epsilon
    assert (p == 1 - q) if kind == "symmetric" else (p == F(1, 2))


def test_so_much_noise_that_a_threshold_cannot_follow_stays_below() -> None:
    assert hs.UnaryEncoding(k=3, epsilon=200.0, encoding="optimized").local_epsilon == pytest.approx(64 * math.log(2))
    assert hs.UnaryEncoding(k=3, epsilon=math.inf, encoding="symmetric").local_epsilon == math.inf


@pytest.mark.parametrize("k", [2, 3, 4, 5])
@pytest.mark.parametrize(("p", "q"), CHANCES)
def test_the_channel_is_that_of_the_definition(k: int, p: Fraction, q: Fraction) -> None:
    expected = np.array(one_hot_rows(k, p, q), dtype=np.float64)
    assert law(k, p, q).channel().matrix == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize(("p", "q"), CHANCES)
def test_a_report_is_a_dummy_s_or_one_given_that_the_own_bit_is_set(k: int, p: Fraction, q: Fraction) -> None:
    dummy = one_hot_rows(k, q, q)[0]
    one = law(k, p, q)
    for x, row in enumerate(one_hot_rows(k, p, q)):
        assert row == [
            (1 - one.told) * mass + one.told * (mass / q if report >> x & 1 else 0) for report, mass in enumerate(dummy)
        ]
    assert one.blanket().law == pytest.approx([float(mass) for mass in dummy], abs=1e-15)


def test_people_with_both_encodings_hide_together_as_their_matrices_do() -> None:
    kinds: tuple[Encoding, ...] = ("symmetric", "optimized")
    parts = [(600, hs.UnaryEncoding(k=3, epsilon=1.0, encoding=kind)) for kind in kinds]
    matrices = [(count, hs.MatrixRandomizer(channel=one.channel())) for count, one in parts]
    ours, theirs = (
        hs.dp.epsilon(hs.MixedProtocol(groups=groups, shuffler=hs.UniformShuffle()), delta=1e-5)
        for groups in (parts, matrices)
    )
    assert ours.lower == pytest.approx(theirs.lower, rel=1e-3)
    assert theirs.lower <= ours.upper == pytest.approx(theirs.upper, rel=0.02)


@pytest.mark.parametrize("kind", ["symmetric", "optimized"])
def test_a_thousand_values_have_every_figure(kind: Encoding) -> None:
    encoding = hs.UnaryEncoding(k=1000, epsilon=1.0, encoding=kind)
    survey = hs.Protocol(randomizer=encoding, shuffler=hs.UniformShuffle(), n=100_000)
    epsilon = hs.dp.epsilon(survey, delta=1e-6)
    assert epsilon.lower <= epsilon.upper < 1.01 * epsilon.lower
    assert hs.pie.alpha(survey).kind == hs.pie.bayes_error(survey).kind == "exact"
    few = hs.Protocol(randomizer=encoding, shuffler=hs.UniformShuffle(), n=3)
    assert hs.pie.alpha(few).upper < hs.pie.alpha(survey).upper < math.log2(1000)
    assert 1 / 1000 < hs.qif.vulnerability(survey).upper < hs.qif.vulnerability(few).upper < math.e / 1000
    with pytest.raises(UnsupportedProtocolError, match=r"1,000 \* 2\*\*1,000 entries"):
        encoding.channel()


@pytest.mark.parametrize("k", [62, 63, 64, 126, 200])
def test_reports_are_packed_and_counted_bit_by_bit(k: int) -> None:
    encoding = hs.UnaryEncoding(k=k, epsilon=2.0, encoding="optimized")
    values = np.arange(1000) % k
    reports = encoding.randomize(values, rng=hs.reproducible(1))
    words = reports.reshape(1000, -1)
    assert words.shape[1] == -(-k // 63)
    bits = np.array([[int(row[x // 63]) >> (x % 63) & 1 for x in range(k)] for row in words])
    assert sum(int(word).bit_count() for word in words.ravel()) == bits.sum()  # no bit beyond the values
    assert np.array_equal(encoding.counts(reports).counts, bits.sum(axis=0))
    assert np.array_equal(encoding.supports(reports, np.arange(k)), bits.T.astype(bool))
    assert np.array_equal(encoding.supported(reports), bits.sum(axis=1))
    layout = encoding.layout
    assert np.array_equal(layout.unpack(layout.pack(reports)), reports)
    assert (words < np.array([float(limit) for limit in layout.limits])).all()


def test_bits_of_a_long_report_are_independent_with_the_right_chances() -> None:
    k, n = 130, 40_000
    encoding = hs.UnaryEncoding(k=k, epsilon=2.0, encoding="optimized")
    p, q = float(encoding.law().own), float(encoding.law().raised)
    reports = encoding.randomize(np.full(n, 63), rng=hs.reproducible(2))
    shares = encoding.counts(reports).counts / n
    expected = np.where(np.arange(k) == 63, p, q)
    spread = np.sqrt(expected * (1 - expected) / n)
    assert (np.abs(shares - expected) < 6 * spread).all()
    bits = encoding.supports(reports, np.arange(k)).astype(float)
    correlations = np.corrcoef(bits)[np.triu_indices(k, 1)]
    assert np.abs(correlations).max() < 6 / math.sqrt(n)
    dummies = encoding.supports(encoding.dummies(n, rng=hs.reproducible(3)), np.arange(k)).mean(axis=1)
    assert (np.abs(dummies - q) < 6 * math.sqrt(q * (1 - q) / n)).all()


def test_a_keyed_record_repeats_a_long_report() -> None:
    encoding, records = (
        hs.UnaryEncoding(k=300, epsilon=1.0, encoding="symmetric"),
        np.array([5, 9, 2, 77], dtype=np.uint64),
    )
    values = np.array([0, 299, 63, 62])
    whole = encoding.randomize(values, rng=hs.keyed(key=bytes(32), records=records))
    again = encoding.randomize(values[[2]], rng=hs.keyed(key=bytes(32), records=records[[2]]))
    assert np.array_equal(whole[[2]], again)
    assert len({tuple(row) for row in whole.tolist()}) == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"k": 1, "epsilon": 1.0, "encoding": "optimized"}, r"`k` must be an integer from 2 to 65536, got k=1"),
        ({"k": 5, "epsilon": 0.0, "encoding": "optimized"}, r"`epsilon` must be > 0"),
        (
            {"k": 5, "epsilon": 1e-20, "encoding": "symmetric"},
            r"`epsilon` must be large enough that a bit depends on its value",
        ),
        ({"k": 5, "epsilon": 1.0, "encoding": "OUE"}, r"`encoding` must be symmetric or optimized, got encoding=OUE"),
    ],
)
def test_bad_parameters(arguments: dict[str, float], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        hs.UnaryEncoding(**arguments)  # type: ignore[arg-type]


def test_reports_of_another_shape_are_refused() -> None:
    encoding = hs.UnaryEncoding(k=100, epsilon=1.0, encoding="optimized")
    with pytest.raises(InvalidInputError, match=r"`reports` must be of shape \(3, 2\)"):
        encoding.counts(np.zeros(3, dtype=np.int64))
    with pytest.raises(InvalidInputError, match="`reports` must be integers from 0 to 137438953471"):
        encoding.counts(np.full((3, 2), 1 << 40))


def test_encodings_of_one_size_have_the_same_classes() -> None:
    laws = [hs.UnaryEncoding(k=5, epsilon=1.0, encoding=kind).law() for kind in ("symmetric", "optimized")]
    assert laws[0].classes == laws[1].classes != hs.UnaryEncoding(k=6, epsilon=1.0, encoding="optimized").law().classes
    assert laws[0].one_hot == laws[0]
    assert hs.SubsetSelection(k=5, w=2, epsilon=1.0).law().one_hot is None


@pytest.mark.parametrize(
    ("trials", "chance"), [(0, F(1, 3)), (1, F(1, 2)), (7, F(1, 5)), (7, F(1)), (7, F(0)), (9, F(9, 10))]
)
def test_the_law_of_heads(trials: int, chance: Fraction) -> None:
    masses = dict(binomial(trials, chance))
    for i in range(trials + 1):
        exact = math.comb(trials, i) * chance**i * (1 - chance) ** (trials - i)
        assert float(masses.get(i, 0)) == pytest.approx(float(exact), rel=1e-14)
    many = binomial(10**5, F(1, 3))
    assert len(many) < 20_000
    assert float(1 - sum(mass for _, mass in many)) == pytest.approx(0, abs=1e-25)


def test_the_law_knows_how_many_values_there_are() -> None:
    assert hs.UnaryEncoding(k=1000, epsilon=1.0).law().values == 1000


@pytest.mark.parametrize(("kind", "epsilon"), [("symmetric", 1e6), ("optimized", 1e7), ("symmetric", 1e300)])
def test_hardly_any_noise_is_the_least_that_is_drawn(kind: Encoding, epsilon: float) -> None:
    device = hs.UnaryEncoding(k=5, epsilon=epsilon, encoding=kind)
    assert device.channel().matrix.min() > 0
    survey = hs.Protocol(randomizer=device, shuffler=hs.UniformShuffle(), n=10)
    assert 0 <= hs.dp.epsilon(survey, delta=1e-6).upper < 100


def test_names_and_defaults_are_those_of_a_specification() -> None:
    for encoding in ("symmetric", "optimized"):
        device = hs.UnaryEncoding(k=5, epsilon=1.0, encoding=encoding)
        assert device == hs.UnaryEncoding(k=5, epsilon=1.0, encoding=encoding)
        assert device == hs.UnaryEncoding.from_settings(5, {"epsilon": 1.0, "encoding": encoding})
        assert device.with_epsilon(2.0).encoding == encoding
    assert hs.LocalHashing(k=100, epsilon=3.0) == hs.LocalHashing.from_settings(100, {"epsilon": 3.0})
    assert hs.SubsetSelection(k=20, epsilon=1.0) == hs.SubsetSelection.from_settings(20, {"epsilon": 1.0})
    with pytest.raises(InvalidInputError, match="`encoding` must be symmetric or optimized"):
        hs.UnaryEncoding(k=5, epsilon=1.0, encoding="x")  # type: ignore[arg-type]

"""Bins are a shortcut that may only cost: a coarser partition never lowers an upper end, nor raises a lower one."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.curves.laws import blanket_bound, kinds, known_dataset
from hushuffle.curves.laws.blanket_bound import BlanketBound
from hushuffle.curves.laws.finite_blanket import FiniteDivergence
from hushuffle.curves.pairs import composition, dominating
from hushuffle.curves.search import privacy_curve
from hushuffle.mechanisms.release import Release
from hushuffle.numerics import binomial
from hushuffle.numerics.binomial import Floats

ROUNDING = 1e-9
"""What two roads to one figure may differ by, relatively."""


def blanket(n: int = 2000, dummies: int = 0) -> BlanketBound:
    survey = hs.RandomizedResponse(k=4, epsilon=2.0)
    truth, lie = (float(part) for part in (survey.channel().matrix[0, 0], survey.channel().matrix[0, 1]))
    return BlanketBound.of(k=4, n=n, truth=truth, lie=lie, dummies=dummies)


@pytest.mark.parametrize("dummies", [0, 300])
@pytest.mark.parametrize("epsilon", [0.0, 0.05, 0.15, 0.3])
def test_rows_of_the_count_only_raise_the_upper_end(
    epsilon: float, dummies: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = []
    for step in (1, 2, 6, 24):
        monkeypatch.setattr(blanket_bound, "row_step", lambda _low, _high, step=step: step)
        ends.append(blanket(dummies=dummies).upper(epsilon))
    for finer, coarser in itertools.pairwise(ends):
        assert finer <= coarser * (1 + ROUNDING)
    assert ends[-1] > ends[0]  # the partition matters, else this test would test nothing


@pytest.mark.parametrize(("n", "chance"), [(60, 0.3), (2_000, 0.9), (2_000, 0.3), (20_000, 0.6)])
def test_shortfalls_by_a_recurrence_are_those_of_each_row(n: int, chance: float) -> None:
    own = np.arange(n // 5, n // 5 + n // 20, dtype=np.float64)
    middle = float(own.mean() + (n - own.mean()) * chance)
    nodes = np.clip(middle + np.sqrt(n) * np.linspace(-6, 6, 25), own[-1], n).round()
    level, left = nodes - own[:, None], (n - own)[:, None]
    direct = binomial.shortfall(level, left, chance)[0]
    quick, doubt = blanket_bound._from_last(level, left, chance, binomial.pmf(level[-1], left[-1], chance))
    assert np.all(np.abs(quick - direct) <= 0.1 * doubt)


@pytest.mark.parametrize("epsilon", [0.0, 0.05, 0.15, 0.3])
def test_nodes_of_the_number_of_reports_only_raise_the_upper_end(
    epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = blanket_bound._nodes

    def thinned(every: int) -> float:
        def nodes(ends: tuple[float, float], mean: float, variance: float, size: float) -> Floats:
            values = plain(ends, mean, variance, size)
            return np.union1d(values[::every], values[[0, -1]])

        monkeypatch.setattr(blanket_bound, "_nodes", nodes)
        return blanket(n=400).upper(epsilon)

    ends = [thinned(every) for every in (1, 2, 8, 32)]
    for finer, coarser in itertools.pairwise(ends):
        assert finer <= coarser * (1 + ROUNDING)
    assert ends[-1] > ends[0]


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.4])
def test_rows_of_people_elsewhere_only_raise_the_upper_end_of_a_known_dataset(
    epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    law = hs.RandomizedResponse(k=5, epsilon=1.5).law()
    ends = []
    for fine in (1e-9, 0.02, 0.1, 0.5):
        monkeypatch.setattr(known_dataset, "_FINE", fine)
        dataset = known_dataset.KaryDataset.of((30, 20, 10, 25, 15), law, 0, 1e-8, local_epsilon=1.5)
        low, high, _ = dataset.ends(epsilon)
        ends.append((low, high))
    for (low, high), (coarser_low, coarser_high) in itertools.pairwise(ends):
        assert high <= coarser_high * (1 + ROUNDING)
        assert low >= coarser_low * (1 - ROUNDING)
    assert ends[-1][1] > ends[0][1]


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.5])
def test_rows_of_the_blanket_with_dummies_only_raise_the_upper_end(
    epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    randomizer = hs.MatrixRandomizer(channel=hs.Channel(matrix=[[0.5, 0.2, 0.3], [0.1, 0.7, 0.2], [0.3, 0.3, 0.4]]))
    protocol = hs.Protocol(randomizer=randomizer, shuffler=hs.Scrambler(dummies=60), n=300)
    ends = []
    for share in (1e-9, 0.02, 0.06, 0.2):
        monkeypatch.setattr(kinds, "_BIN", share)
        ends.append(FiniteDivergence.of(Release.of(protocol)).blanket(epsilon))
    for finer, coarser in itertools.pairwise(ends):
        assert finer <= coarser * (1 + 1e-3)  # the scores are smoothed for each count anew
    assert ends[-1] > ends[0]


@pytest.mark.parametrize("epsilon", [0.5, 1.0])
def test_a_finer_lattice_of_losses_narrows_a_composition_from_both_sides(
    epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = dominating.common_step
    law = privacy_curve(
        hs.Protocol(randomizer=hs.RandomizedResponse(k=3, epsilon=2.0), shuffler=hs.UniformShuffle(), n=300)
    )
    ends = []
    for factor in (1, 4, 16):
        monkeypatch.setattr(composition, "common_step", lambda laws, factor=factor: factor * plain(laws))
        bound = composition.composed_delta([(law, 6)], epsilon=epsilon)
        ends.append((bound.lower, bound.upper))
    for (low, high), (coarser_low, coarser_high) in itertools.pairwise(ends):
        assert high <= coarser_high * (1 + ROUNDING)
        assert low >= coarser_low * (1 - ROUNDING)

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from hushuffle.collection.engines import kernel as module
from hushuffle.collection.engines.kernel import Kernel
from hushuffle.collection.engines.local import LocalCollection
from hushuffle.errors import InvalidInputError
from hushuffle.mechanisms.randomizers import (
    HadamardResponse,
    LocalHashing,
    Mechanism,
    RandomizedResponse,
    SubsetSelection,
    UnaryEncoding,
)
from hushuffle.mechanisms.shufflers import Scrambler
from hushuffle.randomness import reproducible

KEY = bytes(range(32))
MECHANISMS = [
    RandomizedResponse(k=300, epsilon=2.0),
    LocalHashing(k=300, g=4, epsilon=2.0),
    LocalHashing(k=300, g=5, epsilon=2.0),
    SubsetSelection(k=300, w=3, epsilon=2.0),
    UnaryEncoding(k=300, epsilon=2.0),
    HadamardResponse(k=300, epsilon=2.0),
]


@pytest.mark.parametrize("randomizer", MECHANISMS)
def test_reports_are_those_of_the_randomizer(randomizer: Mechanism) -> None:
    values = np.arange(300)
    kernel = Kernel(randomizer=randomizer)
    packed = kernel.reports(values, rng=reproducible(3))
    assert np.array_equal(kernel.layout.unpack(packed), randomizer.randomize(values, rng=reproducible(3)))
    drawn = kernel.dummies(50, rng=reproducible(3))
    assert np.array_equal(kernel.layout.unpack(drawn), randomizer.dummies(50, rng=reproducible(3)))
    assert kernel.reports(values).shape == (300,)


@pytest.mark.parametrize("randomizer", MECHANISMS)
def test_a_record_repeats_its_report_in_any_company(randomizer: Mechanism, monkeypatch: pytest.MonkeyPatch) -> None:
    values, records = np.arange(300), np.arange(1000, 1300).astype(np.uint64)
    kernel = Kernel(randomizer=randomizer, key=KEY, round=2)
    whole = kernel.reports(values, records=records)
    monkeypatch.setattr(module, "_BLOCK", 7)
    order = np.random.default_rng(1).permutation(300)
    assert np.array_equal(kernel.reports(values[order], records=records[order]), whole[order])
    sent: Kernel = pickle.loads(pickle.dumps(kernel))  # noqa: S301 - as an engine of many machines does
    assert np.array_equal(sent.reports(values, records=records), whole)
    other = Kernel(randomizer=randomizer, key=KEY, round=3)
    assert not np.array_equal(other.reports(values, records=records), whole)
    assert repr(KEY) not in repr(kernel)


def test_dummies_of_a_key_are_numbered() -> None:
    kernel = Kernel(randomizer=MECHANISMS[0], key=KEY)
    whole = kernel.dummies(20)
    assert np.array_equal(np.concatenate([kernel.dummies(8), kernel.dummies(12, start=8)]), whole)


def test_records_and_keys_go_together() -> None:
    with pytest.raises(InvalidInputError, match="`records` must be set if and only if a key is used"):
        Kernel(randomizer=MECHANISMS[0]).reports(np.zeros(1, dtype=np.int64), records=np.zeros(1, dtype=np.uint64))
    with pytest.raises(InvalidInputError, match="`records`"):
        Kernel(randomizer=MECHANISMS[0], key=KEY).reports(np.zeros(1, dtype=np.int64))


@pytest.mark.parametrize("randomizer", MECHANISMS)
def test_a_collection_on_this_machine(randomizer: Mechanism, tmp_path: Path) -> None:
    engine = LocalCollection(Kernel(randomizer=randomizer), tmp_path, memory=100, rng=reproducible(4))
    for start in (0, 100, 200):
        engine.add(np.arange(start, start + 100))
    assert engine.people == 300
    blocks = np.concatenate(list(engine.blocks(Scrambler(dummies=40))))
    assert blocks.shape == (340,)
    assert list(tmp_path.iterdir()) == []


def test_a_keyed_collection_repeats_its_reports_and_dummies(tmp_path: Path) -> None:
    def collected() -> np.ndarray[tuple[int], np.dtype[np.void]]:
        engine = LocalCollection(Kernel(randomizer=MECHANISMS[0], key=KEY), tmp_path)
        engine.add(np.arange(300), np.arange(300, dtype=np.uint64))
        return np.concatenate(list(engine.blocks(Scrambler(dummies=40), bytes(32))))

    first, second = collected(), collected()
    assert not np.array_equal(first, second)
    assert np.array_equal(np.sort(first), np.sort(second))


def test_dummies_of_a_keyed_collection_need_a_key(tmp_path: Path) -> None:
    engine = LocalCollection(Kernel(randomizer=MECHANISMS[0], key=KEY), tmp_path)
    with pytest.raises(InvalidInputError, match="`dummy_key` must be set"):
        list(engine.blocks(Scrambler(dummies=1)))

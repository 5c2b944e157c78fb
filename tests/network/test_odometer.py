from __future__ import annotations

import math
import multiprocessing
import os
from pathlib import Path

import pytest

from hushuffle.errors import DataError, InvalidInputError
from hushuffle.network.check import Odometer, Spending

KEY = bytes(range(32))


@pytest.fixture
def odometer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Odometer:
    monkeypatch.setenv("HUSHUFFLE_STATE", str(tmp_path))
    result = Odometer.of(KEY)
    assert result.begin()
    return result


def test_spendings_add_up_to_the_budget(odometer: Odometer) -> None:
    for number in range(3):
        assert odometer.spend(Spending(run=f"run {number}", epsilon=0.1, delta=1e-7), max_epsilon=0.3)
    message = (
        "Run more would spend epsilon 0.1 and delta 0. Epsilon 0.3 and delta 3e-07 are spent, of a budget of epsilon "
        "0.3 and delta 1. Nothing was sent"
    )
    with pytest.raises(DataError, match=message):
        odometer.spend(Spending(run="more", epsilon=0.1), max_epsilon=0.3)
    with pytest.raises(DataError, match=r"[Nn]othing was sent"):
        odometer.spend(Spending(run="more", epsilon=0.0, delta=1e-7), max_delta=3e-7)
    assert odometer.total() == (0.3, 3e-7)
    assert odometer.spend(Spending(run="more", epsilon=0.1), max_epsilon=0.4)
    assert [spending.run for spending in odometer.spendings()] == ["run 0", "run 1", "run 2", "more"]
    assert not odometer.begin()  # nothing is forgotten
    assert odometer.total() == (0.4, 3e-7)
    assert odometer.spend(Spending(run="no limit", epsilon=math.inf))
    assert odometer.total()[0] == math.inf


def test_the_same_run_is_for_the_same_use(odometer: Odometer) -> None:
    assert odometer.spend(Spending(run="a", epsilon=0.5, use="01"), max_epsilon=0.5)
    assert not odometer.spend(Spending(run="a", epsilon=0.5, use="01"), max_epsilon=0.5)
    for other in (Spending(run="a", epsilon=0.5, use="02"), Spending(run="a", epsilon=0.4, use="01")):
        with pytest.raises(DataError, match="Run a is already on record with other figures or other records"):
            odometer.spend(other)
    assert odometer.total() == (0.5, 0.0)


def test_a_record_that_is_lost(odometer: Odometer) -> None:
    odometer.spend(Spending(run="a", epsilon=0.5))
    path = odometer.folder / "odometer.json"
    whole = path.read_bytes()
    path.unlink()
    with pytest.raises(DataError, match="is missing, so the privacy loss of this key is unknown"):
        odometer.spend(Spending(run="b", epsilon=0.5))
    for damage in (whole[:-1], whole.replace(b'"0.5"', b"0.5"), whole.replace(b'"0.5"', b'"-0.5"')):
        path.write_bytes(damage)
        with pytest.raises(DataError, match="is damaged"):
            odometer.spend(Spending(run="b", epsilon=0.5))


def test_a_full_disk(odometer: Odometer, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", full)
        with pytest.raises(DataError, match=r"cannot be written: No space left on device\. Nothing was sent"):
            odometer.spend(Spending(run="a", epsilon=0.5))
    assert odometer.total() == (0.0, 0.0)


@pytest.mark.parametrize(("epsilon", "delta"), [(-1.0, 0.0), (math.nan, 0.0), (1.0, 1.5), (1.0, math.nan)])
def test_figures_that_are_none(epsilon: float, delta: float) -> None:
    with pytest.raises(InvalidInputError):
        Spending(run="a", epsilon=epsilon, delta=delta)


def spend(folder: Path, number: int) -> None:
    try:
        Odometer(folder=folder).spend(Spending(run=str(number), epsilon=0.25), max_epsilon=1.0)
    except DataError:
        return


def test_processes_share_one_budget(odometer: Odometer) -> None:
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=spend, args=(odometer.folder, number)) for number in range(8)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert odometer.total() == (1.0, 0.0)
    assert len({spending.run for spending in odometer.spendings()}) == 4

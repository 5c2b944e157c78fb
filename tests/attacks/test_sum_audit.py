"""Audits of sums: honest devices pass, each broken one is found by the attack that looks there."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import hushuffle as hs
from hushuffle._checks import Integers
from hushuffle.attacks import audit_specification
from hushuffle.attacks.audit_specification import audit_sum, of_messages, of_pairs, subset_sums
from hushuffle.attacks.games import Terms
from hushuffle.cli import main
from hushuffle.cli.console import Exit
from hushuffle.mechanisms.split_and_mix import SplitAndMix
from hushuffle.model import Report
from hushuffle.randomness import Randomness, reproducible
from hushuffle.specification.sums import SumSpecification, parse_sum
from oracles.split_and_mix import distance, release

SMALL = """
population = { n = 4, kind = "number", low = 0, high = 1, levels = 2 }
sum = { epsilon = 1.0, delta = 0.1 }
"""
CROWD = """
population = { n = 40, kind = "number", low = 0, high = 10, levels = 11 }
sum = { epsilon = 1.0, delta = 1e-4, honest = 0.75 }
"""


def run(text: str, *, trials: int = 8_000, seed: int = 1) -> Report:
    return audit_sum(parse_sum(text), trials=trials, rng=reproducible(seed))


def verdicts(report: Report) -> dict[str, str]:
    """By what was looked at; of the sum at the delta where half of epsilon is left."""
    return {str(row[0]).partition(", ")[2]: str(row[1]) for row in report.tables[0].rows}


@pytest.mark.parametrize("text", [SMALL, CROWD])
def test_an_honest_device_passes_and_shows_most_of_what_is_claimed(text: str) -> None:
    report = run(text)
    assert "refuted" not in {cell for table in report.tables for row in table.rows for cell in row}
    rows = report.tables[0].rows
    assert [str(row[0]).partition(", ")[2] for row in rows] == [
        "from the sum",
        "from the sum",
        "from single messages",
        "from pairs of messages",
    ]
    protocol = parse_sum(text).build(4 if text == SMALL else 40)
    assert rows[0][3] == hs.dp.epsilon(protocol, delta=protocol.delta)
    assert float(str(rows[0][2]).split()[0]) > 0.5
    assert report.unanswered[0].topic == "Local epsilon"


def test_releases_are_those_of_the_people_needed() -> None:
    protocol = parse_sum(CROWD).build(40)
    assert audit_specification._mixed(protocol, 1, 3, reproducible(1)).shape == (3, 30 * protocol.messages)


def test_half_of_the_noise_is_found_in_the_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    def shares(protocol: SplitAndMix, codes: Integers, *, rng: Randomness) -> Integers:
        return protocol.split(codes + protocol.noise.draw(rng, codes.size), rng=rng)

    monkeypatch.setattr(SplitAndMix, "shares", shares)
    assert verdicts(run(CROWD))["from the sum"] == "refuted"


def test_numbers_in_the_clear_are_found_among_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    def split(protocol: SplitAndMix, numbers: Integers, *, rng: Randomness) -> Integers:
        del rng
        found = np.zeros((protocol.messages, numbers.size), dtype=np.int64)
        found[0] = numbers % protocol.modulus
        return found

    monkeypatch.setattr(SplitAndMix, "split", split)
    assert verdicts(run(CROWD))["from single messages"] == "refuted"


def test_two_messages_that_are_the_number_are_found_among_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = SplitAndMix.split

    def split(protocol: SplitAndMix, numbers: Integers, *, rng: Randomness) -> Integers:
        found = honest(protocol, numbers, rng=rng)
        found[-1] = (found[-1] + found[1:-1].sum(axis=0)) % protocol.modulus
        found[1:-1] = np.stack([rng.integers(protocol.modulus, numbers.size) for _ in found[1:-1]])
        found[1] = -found[2:-1].sum(axis=0) % protocol.modulus
        return found

    monkeypatch.setattr(SplitAndMix, "split", split)
    found = verdicts(run(CROWD.replace("levels = 11", "levels = 10_001")))  # few pairs add up to it by chance
    assert found["from pairs of messages"] == "refuted"
    assert found["from single messages"] == "not refuted"


def test_a_device_of_two_messages_is_found_by_counting_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many messages as are needed are claimed; the device sends 0 in place of all but two."""
    honest = SplitAndMix.split

    def split(protocol: SplitAndMix, numbers: Integers, *, rng: Randomness) -> Integers:
        found = honest(protocol, numbers, rng=rng)
        found[0] = (found[0] + found[2:].sum(axis=0)) % protocol.modulus
        found[2:] = 0
        return found

    assert run(SMALL, trials=4_000).tables[1].rows[1][2] == "not refuted"
    monkeypatch.setattr(SplitAndMix, "split", split)
    assert run(SMALL, trials=4_000).tables[1].rows[1][2] == "refuted"


def test_sets_and_pairs_are_counted_right() -> None:
    rng = np.random.default_rng(1)
    protocol = parse_sum(SMALL).build(4)
    q, top = protocol.modulus, protocol.top
    mixed = rng.integers(0, 6, size=(50, 9)) * rng.choice([1, q - 1], size=(50, 9)) % q
    for row, singles, pairs in zip(mixed, of_messages(protocol, mixed), of_pairs(protocol, mixed), strict=True):
        sums = [sum(pair) % q for pair in combinations(row.tolist(), 2)]
        assert pairs == sums.count(top)
        assert singles == row.tolist().count(top)
        expected = np.bincount([sum(three) % q for three in combinations(row.tolist(), 3)], minlength=q)
        assert subset_sums(row, 3, q).tolist() == expected.tolist()


def test_the_attack_on_equal_sums_is_as_good_as_any_in_a_crowd_of_two() -> None:
    protocol = replace(parse_sum(SMALL).build(2))
    object.__setattr__(protocol, "messages", 2)
    object.__setattr__(protocol, "modulus", 8)
    laws = [release(values, messages=2, modulus=8) for values in ((2, 0), (1, 1))]
    best = Fraction(1, 2) + distance(*laws) / 2
    game = audit_specification._beyond(protocol, Terms(releases=20_000, confidence=0.999, rng=reproducible(1)))
    assert game.success.lower < float(best) < game.success.upper


def test_what_cannot_be_tried_is_a_row_that_says_why() -> None:
    large = SMALL.replace("n = 4", "n = 4_000_000").replace("0.1", "1e-9")
    reasons = {row.topic: row.reason for row in audit_sum(parse_sum(large)).unanswered}
    assert "No privacy is claimed" in reasons["Local epsilon"]
    assert "200 releases of" in reasons["Central epsilon"]
    assert "200 releases of" in reasons["What messages reveal beyond their sum"]
    crowd: SumSpecification = parse_sum(CROWD)
    told = {row.topic: row.reason for row in audit_sum(crowd, trials=400, rng=reproducible(1)).unanswered}
    assert "10^13 sets of 7 messages" in told["What messages reveal beyond their sum"]
    none = audit_sum(crowd, trials=400, delta=1e-12, rng=reproducible(1)).unanswered
    assert (
        "no central epsilon is claimed at delta = 1e-12" in {row.topic: row.reason for row in none}["Central epsilon"]
    )


def test_the_program_audits_sums(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = tmp_path / "sum.toml", tmp_path / "out"
    file.write_text(CROWD, encoding="utf-8")
    assert main(["audit", str(file), "--trials", "400", "--seed", "1", "--out", str(out)]) == Exit.DONE
    assert "No claim is refuted" in capsys.readouterr().out
    assert len(json.loads((out / "study.json").read_text(encoding="utf-8"))["tables"][0]["rows"]) == 4

"""A measured lower end of epsilon: never above the truth but by the stated chance, close to it, and quick to accuse."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from hushuffle import (
    LocalHashing,
    MatrixRandomizer,
    NoShuffle,
    Protocol,
    RandomizedResponse,
    UnaryEncoding,
    UniformShuffle,
    dp,
)
from hushuffle.attacks.audit import audit_mechanism, audit_protocol, audit_reports, audit_sampler
from hushuffle.attacks.audit_study import audit_deployment, study_of
from hushuffle.attacks.measured import measure
from hushuffle.cli import main
from hushuffle.cli.console import Exit
from hushuffle.errors import InvalidInputError
from hushuffle.randomness import reproducible

TRUTH = math.e / (1 + math.e)


def coins(size: int, chance: float, rng: np.random.Generator) -> npt.NDArray[np.float64]:
    return (rng.random(size) < chance).astype(np.float64)


def test_an_honest_claim_is_accused_as_seldom_as_stated() -> None:
    rng = np.random.default_rng(1)
    accused = sum(
        measure((coins(600, TRUTH, rng), coins(600, 1 - TRUTH, rng)), claimed=1.0, confidence=0.8).refuted
        for _ in range(60)
    )
    assert accused <= 0.2 * 60 + 4 * math.sqrt(60 * 0.2 * 0.8)


def repeated(times: int, epsilon: float, trials: int) -> int:
    """Return how many of so many audits refute a callable that has this epsilon and claims 1."""
    rng, keep = np.random.default_rng(2), math.exp(epsilon) / (1 + math.exp(epsilon))

    def client(values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return values ^ (rng.random(values.size) > keep)

    return sum(audit_sampler(client, (0, 1), claimed=1.0, trials=trials).refuted for _ in range(times))


def test_a_claim_that_is_five_percent_too_low_is_refuted() -> None:
    assert repeated(20, 1.05, 200_000) >= 18


@pytest.mark.slow
def test_a_thousand_audits_catch_a_liar_and_leave_the_honest_alone() -> None:
    assert repeated(1000, 1.05, 200_000) >= 950
    assert repeated(1000, 1.0, 200_000) <= 50


def test_about_as_many_trials_as_said_show_a_lie_of_one_percent() -> None:
    rng = np.random.default_rng(3)
    needed = measure((coins(200_000, TRUTH, rng), coins(200_000, 1 - TRUTH, rng)), claimed=1.0).for_a_lie
    size = int(needed / 2)
    shown = sum(
        measure((coins(size, TRUTH, rng), coins(size, 1 - TRUTH, rng)), claimed=0.99).refuted for _ in range(20)
    )
    assert 3 <= shown <= 17


def test_either_direction_is_looked_at() -> None:
    rng = np.random.default_rng(4)
    rare = measure((coins(100_000, 0.99, rng), coins(100_000, 0.9, rng)), claimed=1.0)
    assert rare.first == "second"  # zeros happen 0.1 against 0.01: ln 10
    assert rare.refuted
    assert 1.8 < rare.epsilon.lower < math.log(10)


def test_errors_of_all_tests_are_within_the_band_together() -> None:
    rng, outside = np.random.default_rng(6), 0
    for _ in range(60):
        scores = (rng.normal(1.0, 1.0, 400), rng.normal(0.0, 1.0, 400))
        found = measure(scores, claimed=5.0, confidence=0.8)
        missed = np.sort(found.false_negatives)
        levels = NORMAL.inv_cdf
        thresholds = [levels(min(max(1 - share, 1e-9), 1 - 1e-9)) for share in found.false_positives]
        true = np.array([NORMAL.cdf(threshold - 1.0) for threshold in thresholds])
        outside += bool((np.abs(missed - np.sort(true)) > 2 * found.off).any())
    assert outside <= 0.2 * 60


NORMAL = NormalDist()


def test_trials_that_choose_the_event_do_not_count_it() -> None:
    scores = (np.repeat([1.0, 0.0], [1000, 4000]), np.zeros(5000))
    found = measure(scores, claimed=1.0)
    assert (found.trials, found.epsilon.lower) == (4000, 0.0)  # all that told anything was among the first thousand


def test_reports_that_teach_are_not_scored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hushuffle.attacks.audit._shuffled", lambda reports: reports)
    first = [f"{place}" for place in range(50) for _ in range(25)] + ["same"] * 3750
    found = audit_reports(first, ["same"] * 5000, claimed=1.0)
    assert found.epsilon.lower == 0.0
    assert found.trials == 3000  # a quarter of 5,000 teaches, a fifth of the rest chooses


def test_delta_is_taken_off() -> None:
    rng = np.random.default_rng(5)
    scores = (coins(100_000, 0.1, rng), np.zeros(100_000))
    assert measure(scores, claimed=1.0, delta=0.05).refuted
    assert not measure(scores, claimed=1.0, delta=0.11).refuted
    both = (scores[0], coins(100_000, 0.02, rng))
    assert 0.8 < measure(both, claimed=1.0, delta=0.05).epsilon.lower < math.log(0.05 / 0.02)


def test_local_hashing_comes_within_three_percent() -> None:
    mechanism = LocalHashing(k=100, g=8, epsilon=2.0)
    found = audit_mechanism(mechanism, trials=1_000_000, rng=reproducible(1))
    assert 0.97 * 2.0 < found.epsilon.lower <= mechanism.local_epsilon
    assert not found.refuted


DEVICES = {
    "response": RandomizedResponse(k=5, epsilon=1.0),
    "unary": UnaryEncoding(k=4, epsilon=1.5),
    "matrix": MatrixRandomizer([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]]),
}


@pytest.mark.parametrize("mechanism", DEVICES.values(), ids=DEVICES.keys())
def test_our_own_devices_keep_what_they_claim(mechanism: Any) -> None:
    found = audit_mechanism(mechanism, trials=300_000, confidence=0.99, rng=reproducible(1))
    assert not found.refuted
    assert found.epsilon.lower > 0.93 * mechanism.local_epsilon


def test_a_sampler_that_tells_more_than_its_law_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    honest, loose = RandomizedResponse(k=4, epsilon=1.0), RandomizedResponse(k=4, epsilon=1.1)
    draw = loose.randomize
    monkeypatch.setattr(RandomizedResponse, "randomize", lambda _self, values, *, rng: draw(values, rng=rng))
    assert audit_mechanism(honest, trials=400_000, rng=reproducible(1)).refuted


def test_releases_stay_below_the_certified_end_and_come_close() -> None:
    protocol = Protocol(randomizer=RandomizedResponse(k=2, epsilon=2.0), shuffler=UniformShuffle(), n=6)
    bound = dp.epsilon(protocol, delta=0.05)
    assert bound.witness is not None
    found = audit_protocol(
        protocol,
        others=bound.witness.others,
        values=bound.witness.target,
        claimed=bound.upper,
        delta=0.05,
        trials=12_000,
        rng=reproducible(1),
    )
    assert not found.refuted
    assert found.epsilon.lower > 0.85 * bound.lower


def test_a_shuffler_that_does_not_shuffle_is_refuted() -> None:
    n = 30
    shuffled = Protocol(randomizer=RandomizedResponse(k=2, epsilon=2.0), shuffler=UniformShuffle(), n=n)
    claimed = dp.epsilon(shuffled, delta=0.01)
    honest = Protocol(randomizer=shuffled.randomizer, shuffler=NoShuffle(), n=1)
    found = audit_protocol(honest, others=(), values=(0, 1), claimed=claimed.upper, delta=0.01, trials=6000)
    assert found.refuted


def test_the_study_holds_all_claims_of_a_deployment() -> None:
    protocol = Protocol(randomizer=RandomizedResponse(k=3, epsilon=1.5), shuffler=UniformShuffle(), n=12)
    made = audit_deployment(protocol, delta=0.01, trials=4000, rng=reproducible(1), labels=("a", "b", "c"))
    assert [row[0] for row in made.tables[0].rows][:2] == ["Local epsilon", "Central epsilon at delta = 0.01"]
    assert len(made.tables[0].rows) == 3
    assert {row[1] for row in made.tables[0].rows} == {"not refuted"}
    assert "a against" in str(made.tables[0].rows[0][5]) or "b against" in str(made.tables[0].rows[0][5])
    (chart,) = made.charts
    certified, found = chart.series
    assert [series.label for series in chart.series] == ["certified, of all tests", "measured, at most"]
    least = np.interp(found.x, certified.x, certified.lower)
    assert bool((np.array(found.lower) >= least - 1e-9).all())
    many = Protocol(randomizer=RandomizedResponse(k=3, epsilon=1.5), shuffler=UniformShuffle(), n=10**7)
    assert (
        "200 releases of 10,000,000 messages take too long"
        in audit_deployment(many, delta=1e-6, rng=reproducible(1)).unanswered[0].reason
    )


def bits(
    values: npt.NDArray[np.int64], rng: np.random.Generator, *, truth: float = 0.75, size: int = 16
) -> list[bytes]:
    """Return one-hot bits, each flipped with probability 1 - truth, packed: epsilon is 2 ln(truth/(1 - truth))."""
    hot = np.zeros((values.size, size), dtype=np.uint8)
    hot[np.arange(values.size), values] = 1
    flipped = hot ^ (rng.random(hot.shape) > truth)
    return [bytes(row) for row in np.packbits(flipped, axis=1)]


def test_packed_bits_of_another_library_are_read_bit_by_bit() -> None:
    rng = np.random.default_rng(1)
    wrong = audit_sampler(lambda values: bits(values, rng), (0, 1), claimed=math.log(3), trials=200_000)
    assert wrong.refuted  # the epsilon of one bit is not that of the report
    right = audit_sampler(lambda values: bits(values, rng), (0, 1), claimed=2 * math.log(3), trials=200_000)
    assert not right.refuted
    assert right.epsilon.lower > 1.9


def test_without_the_hash_functions_little_is_found() -> None:
    mechanism, rng = LocalHashing(k=100, g=3, epsilon=1.0), reproducible(1)
    found = audit_sampler(lambda values: mechanism.randomize(values, rng=rng), (0, 1), claimed=1.0, trials=100_000)
    assert found.epsilon.lower < 0.4
    assert audit_mechanism(mechanism, trials=1_000_000, rng=rng).epsilon.lower > 0.985


def test_numbers_texts_tuples_and_rows() -> None:
    rng = np.random.default_rng(2)
    size = 40_000
    laplace = [(rng.laplace(value, 1.0, size)).tolist() for value in (0.0, 1.0)]
    assert 0.8 < audit_reports(laplace[0], laplace[1], claimed=1.0).epsilon.lower <= 1.0
    told = [np.where(rng.random(size) < chance, "yes", "no").tolist() for chance in (0.75, 0.25)]
    assert 1.0 < audit_reports(told[0], told[1], claimed=2.0).epsilon.lower < math.log(3)
    pairs = [[(word, 0) for word in words] for words in told]
    assert audit_reports(pairs[0], pairs[1], claimed=1.0).refuted
    rows = [np.column_stack([rng.random(size) < chance, rng.random(size) < chance]) for chance in (0.75, 0.25)]
    assert audit_reports(rows[0], rows[1], claimed=2.0).refuted
    same = rng.normal(size=size)
    assert audit_reports(same, rng.permutation(same), claimed=0.1).epsilon.lower < 0.1


def test_the_order_of_reports_accuses_nobody_and_hides_nobody() -> None:
    def drifting(early: float, late: float) -> list[int]:
        return [int(place < share * 10_000) for share in (early, late) for place in range(10_000)]

    # Half of the one and a quarter of the other are ones: epsilon is ln 2, whatever the early and the late ones say.
    honest = audit_reports(drifting(0.25, 0.75), drifting(0.2, 0.3), claimed=math.log(2), confidence=0.9999)
    assert not honest.refuted
    ordered = [sorted(drifting(share, share)) for share in (0.75, 0.25)]
    assert audit_reports(ordered[0], ordered[1], claimed=1.0).refuted


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ([1, 2], [1, 2], "of four trials"),
        ([{}] * 9, [{}] * 9, "numbers, strings, bytes"),
        (np.zeros((9, 2)), np.zeros((9, 3)), "of one type and length"),
    ],
)
def test_what_cannot_be_audited_is_refused(first: Any, second: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        audit_reports(first, second, claimed=1.0)


def test_other_refusals() -> None:
    nan = np.array([0.0, math.nan, 0.0, 0.0])
    with pytest.raises(InvalidInputError, match="nan among them"):
        measure((nan, nan), claimed=1.0)
    with pytest.raises(InvalidInputError, match="one report for each"):
        audit_sampler(lambda _values: [1, 2], (0, 1), claimed=1.0)
    protocol = Protocol(randomizer=RandomizedResponse(k=2, epsilon=1.0), shuffler=UniformShuffle(), n=5)
    with pytest.raises(InvalidInputError, match="n - 1 = 4"):
        audit_protocol(protocol, others=(9,), values=(0, 1), claimed=1.0, delta=0.0)


DEVICE = """
import random, sys
for line in sys.stdin:
    value = line.strip()
    print(value if random.random() < 0.75 else {"yes": "no", "no": "yes"}[value])
"""


def test_a_command_is_audited(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "device.py").write_text(DEVICE)
    command = f"{sys.executable} {tmp_path / 'device.py'}"
    arguments = ["audit", "--command", command, "--values", "yes,no", "--trials", "40000", "--out", str(tmp_path / "o")]
    assert main([*arguments, "--epsilon", "0.9"]) == Exit.MISSED
    assert "the claimed 0.9000 is refuted" in capsys.readouterr().out
    assert main([*arguments, "--epsilon", "1.2"]) == Exit.USAGE
    assert "holds study.html already" in capsys.readouterr().err
    assert main([*arguments, "--epsilon", "1.2", "--overwrite"]) == Exit.DONE
    said = capsys.readouterr().out
    assert "No claim is refuted. This proves no claim" in said
    assert max(map(len, said.splitlines())) <= 80 + len(str(tmp_path))


def test_the_folder_has_the_name_of_the_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "device.py").write_text(DEVICE)
    rest = ["--values", "yes,no", "--trials", "400", "--epsilon", "3"]
    assert main(["audit", "--command", f"{sys.executable} -I device.py --fast", *rest]) == Exit.DONE
    assert (tmp_path / "hushuffle-out" / "audit-device" / "study.json").exists()
    assert main(["audit", "--command", "cat", *rest]) == Exit.MISSED
    assert (tmp_path / "hushuffle-out" / "audit-cat" / "study.json").exists()
    capsys.readouterr()
    assert main(["audit", "--command", "cat", *rest]) == Exit.USAGE
    assert "pass --overwrite" in capsys.readouterr().err


def test_rare_reports_of_one_value_are_listed_if_nothing_is_refuted() -> None:
    rng = np.random.default_rng(3)
    plain = rng.integers(0, 2, 20_000).astype(str).tolist()
    leaks = [f"debug-{place}" for place in range(7) for _ in range(place // 6 + 1)]
    found = audit_reports([*plain, *leaks], [*plain, *["0"] * 8], claimed=3.0, names=("yes", "no"), show=True)
    assert not found.refuted
    assert len(found.rare) == 5
    assert found.rare[0] == ("'debug-6'", "yes", 2)
    answers = " ".join(study_of(found, confidence=0.95, about="A program.").answers)
    assert "for one value only, perhaps by chance: 'debug-6': 2 times for yes; 'debug-" in answers
    assert audit_reports([*plain, *leaks], [*plain, *["0"] * 8], claimed=3.0).rare == ()
    every = [str(place) for place in range(20_000)]
    assert audit_reports(every, plain, claimed=9.0, show=True).rare == ()


@pytest.mark.parametrize(("claimed", "least"), [(1.0, 1.00012), (0.99996, 0.99998), (0.9, 1.4), (12345.0, 12345.6)])
def test_a_refuted_claim_and_what_refutes_it_are_different_numbers(claimed: float, least: float) -> None:
    found = measure((coins(400, 0.5, np.random.default_rng(1)), coins(400, 0.5, np.random.default_rng(2))), claimed=1.0)
    found = replace(found, claimed=claimed, epsilon=replace(found.epsilon, lower=least))
    study = study_of(found, confidence=0.95, about="A program.")
    row = dict(zip(study.tables[0].columns, study.tables[0].rows[0], strict=True))
    assert row["verdict"] == "refuted"
    sentence = study.answers[0].partition("the claimed ")[2]
    low, high = sentence.split(" is refuted, because trials show at least ")
    assert float(low.replace(",", "")) < float(high.rstrip(".").replace(",", ""))
    assert str(row["at least"]).split()[0] == high.rstrip(".")
    assert low in str(row["claimed"])


def test_a_table_of_values_and_reports_is_audited(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(1)
    held = np.where(rng.random(20_000) < 0.5, "a", "b")
    sent = np.where(rng.random(20_000) < 0.9, held, "c")
    rows = "".join(f"{value},{report}\n" for value, report in zip(held, sent, strict=True))
    (tmp_path / "t.csv").write_text("value,report\n" + rows)
    arguments = ["audit", "--reports", str(tmp_path / "t.csv"), "--out", str(tmp_path / "o")]
    assert main([*arguments, "--epsilon", "2"]) == Exit.MISSED
    assert main([*arguments, "--epsilon", "2", "--values", "a,z", "--overwrite"]) == Exit.FAILED
    assert "no row of column value has the value z" in capsys.readouterr().err


def test_a_specification_is_audited(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "s.toml").write_text(
        '[population]\nn = 20\ncategories = ["a", "b", "c"]\n[randomizer]\nkind = "randomized-response"\n'
        'epsilon = 1.5\n[shuffler]\nkind = "uniform"\n[targets]\ndelta = 0.01\n'
    )
    out = str(tmp_path / "o")
    assert main(["audit", str(tmp_path / "s.toml"), "--trials", "2000", "--seed", "1", "--out", out]) == Exit.DONE
    assert "Central epsilon at delta = 0.01" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "audit needs exactly one of"),
        (["a.toml", "--command", "x"], "audit needs exactly one of"),
        (["--command", "x"], "--epsilon is missing"),
        (["a.toml", "--epsilon", "1"], "--epsilon is only for"),
        (["--command", "x", "--epsilon", "1"], "--values must be two different values"),
        (["--command", "x", "--epsilon", "1", "--values", "a,a"], "--values must be two different values"),
    ],
)
def test_wrong_command_lines(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", *arguments]) == Exit.USAGE
    assert message in capsys.readouterr().err


def test_programs_that_are_not_there_or_say_too_little(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rest = ["--values", "a,b", "--epsilon", "1", "--trials", "100", "--out", str(tmp_path / "o")]
    assert main(["audit", "--command", "no-such-program", *rest]) == Exit.FAILED
    assert "there is no program no-such-program" in capsys.readouterr().err
    assert main(["audit", "--command", "true", *rest]) == Exit.FAILED
    assert "wrote 0 lines for 50 values" in capsys.readouterr().err
    assert not (tmp_path / "o").exists()


def test_no_shell_reads_a_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for command in ("true; touch made", "cat $(touch made)", "true && touch made"):
        arguments = ["audit", "--command", command, "--values", "a,b", "--epsilon", "1", "--trials", "100"]
        assert main(arguments) == Exit.FAILED
        assert not (tmp_path / "made").exists()
    assert capsys.readouterr().out == ""


def leaking(rng: np.random.Generator, share: float) -> Callable[[npt.NDArray[np.int64]], list[str]]:
    """Randomized response of two values with epsilon = 1 that now and then prints its true value."""

    def sample(codes: npt.NDArray[np.int64]) -> list[str]:
        lies, leaks = rng.random(codes.size) > 1 / (1 + math.exp(-1)), rng.random(codes.size) < share
        sent = np.where(lies, 1 - codes, codes).tolist()
        return [f"debug-{code}" if leak else str(y) for code, y, leak in zip(codes, sent, leaks, strict=True)]

    return sample


def test_rare_reports_of_one_value_only_refute_a_claim() -> None:
    found = audit_sampler(leaking(np.random.default_rng(1), 1e-4), (0, 1), claimed=1.01, trials=1_000_000)
    assert found.refuted
    assert found.epsilon.confidence == 0.95
    for kinds in found.one_sided:
        assert kinds.hits[0] > 10
        assert kinds.hits[1] == 0
        assert kinds.example == f"'debug-{kinds.first}'"
    assert {(kinds.first, kinds.second) for kinds in found.one_sided} == {("0", "1"), ("1", "0")}
    (sentence, *_, chance) = study_of(found, confidence=0.95, about="A program.").answers
    assert "is refuted" in sentence
    assert "at most 5 %" in chance
    assert "Of 375,000 reports of each value, certain reports occurred" in " ".join(
        study_of(found, confidence=0.95, about="A program.").answers
    )
    assert any(
        "for example 'debug-0'. Check these reports" in answer
        for answer in study_of(found, confidence=0.95, about="A program.").answers
    )
    rng = np.random.default_rng(2)
    reports = [leaking(rng, 1e-3)(np.full(100_000, value)) for value in (0, 1)]
    assert {kinds.example for kinds in audit_reports(*reports, claimed=1.01).one_sided} == {""}


def test_an_honest_device_is_seldom_accused_for_rare_reports() -> None:
    """Of 400 kinds of report, each a little likelier for one value, some come for one value alone by chance."""
    rng, accused = np.random.default_rng(5), 0
    weights = np.exp(np.tile([0.5, -0.5], 200)) * np.geomspace(1, 1e-4, 400)
    laws = [law / law.sum() for law in (weights, np.exp(np.tile([-0.5, 0.5], 200)) * np.geomspace(1, 1e-4, 400))]
    claimed = float(np.abs(np.log(laws[0] / laws[1])).max())
    for _ in range(40):
        first, second = (rng.choice(400, size=10_000, p=law) for law in laws)
        accused += audit_reports([str(y) for y in first], [str(y) for y in second], claimed=claimed).refuted
    assert accused <= 7  # 2 expected at most; 8 or more come with probability .001

"""What every verb warns about, and the mechanism that it names."""

from __future__ import annotations

import math
from pathlib import Path

import polars as pl
import pytest

import hushuffle as hs
from hushuffle.cli import main
from hushuffle.cli.console import Exit
from hushuffle.mechanisms.randomizers import Mechanism
from hushuffle.specification.warnings import deployment_warnings, more_accurate, people_to_show


def warned(randomizer: Mechanism, n: int, delta: float = 1e-9) -> list[str]:
    protocol = hs.Protocol(randomizer=randomizer, shuffler=hs.UniformShuffle(), n=n)
    return [one.key for one in deployment_warnings(protocol, delta=delta)]


def test_each_reason_is_warned_about() -> None:
    assert warned(hs.RandomizedResponse(k=5, epsilon=2.0), 50_000) == []
    assert warned(hs.RandomizedResponse(k=5, epsilon=2.0), 50_000, delta=1 / 50_000) == ["large-delta"]
    assert warned(hs.RandomizedResponse(k=5, epsilon=2.0), 50_000, delta=0.99 / 50_000) == []
    assert warned(hs.RandomizedResponse(k=5, epsilon=4.99), 50_000) == []
    assert warned(hs.RandomizedResponse(k=5, epsilon=5.0), 50_000) == ["large-local-epsilon"]
    assert warned(hs.RandomizedResponse(k=5, epsilon=math.inf), 50_000) == ["no-noise"]
    assert warned(hs.RandomizedResponse(k=2, epsilon=4.0), 99) == ["small-crowd"]
    assert warned(hs.RandomizedResponse(k=2, epsilon=4.0), 100) == []
    assert warned(hs.RandomizedResponse(k=1000, epsilon=2.0), 50_000) == ["rare-values-hidden"]


def test_without_noise_no_share_is_hidden() -> None:
    assert warned(hs.RandomizedResponse(k=1000, epsilon=math.inf), 300) == ["no-noise"]
    assert warned(hs.LocalHashing(k=1000, g=4, epsilon=math.inf), 300) == ["no-noise", "rare-values-hidden"]


def test_a_mechanism_whose_reports_do_not_count_has_the_other_warnings() -> None:
    rows = [[0.5, 0.3, 0.2], [0.2, 0.5, 0.3], [0.3, 0.2, 0.5]]
    assert warned(hs.MatrixRandomizer(rows), 50, delta=0.1) == ["large-delta", "small-crowd", "rare-values-hidden"]
    alike = hs.MatrixRandomizer([rows[0], rows[0], rows[1]])
    assert warned(alike, 50, delta=0.1) == ["large-delta", "small-crowd", "values-not-told-apart"]
    revealing = hs.MatrixRandomizer([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.3, 0.4, 0.3]])
    assert warned(revealing, 5000) == ["impossible-reports"]


def test_values_show_where_more_than_an_even_share_is_not_needed() -> None:
    """Four values: an even share is 25 %."""
    for n, hidden in ((60, True), (2000, False)):
        protocol = hs.Protocol(randomizer=hs.RandomizedResponse(k=4, epsilon=1.0), shuffler=hs.UniformShuffle(), n=n)
        assert (people_to_show(protocol) > n / 4) == hidden
        keys = [one.key for one in deployment_warnings(protocol, delta=1e-9)]
        assert ("rare-values-hidden" in keys) == hidden


def _errors(k: int, epsilon: float) -> dict[str, float]:
    """Return the standard error of a share of 0 of one person's report, from p and q of each mechanism written out.

    k-ary randomized response; hashing into the best power of two of buckets; the best size of a set; a bit for each
    value; half of the reports for each value.
    """
    e = math.exp(epsilon)

    def error(p: float, q: float) -> float:
        return math.sqrt(q * (1 - q)) / (p - q)

    hashing = min(error(e / (e + g - 1), 1 / g) for g in (2, 4, 8, 16, 32, 64, 128, 256))
    sets = []
    for w in range(1, k):
        p = w * e / (w * e + k - w)
        q = p * (w - 1) / (k - 1) + (1 - p) * w / (k - 1)
        sets.append(error(p, q))
    return {
        "randomized-response": error(e / (e + k - 1), 1 / (e + k - 1)),
        "local-hashing": hashing,
        "unary-encoding": error(1 / 2, 1 / (e + 1)),
        "hadamard-response": error(e / (e + 1), 1 / 2),
        "subset-selection": min(sets),
    }


@pytest.mark.parametrize("k", [2, 3, 10, 30, 100, 1000])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0])
def test_the_mechanism_that_does_better_is_named(k: int, epsilon: float) -> None:
    errors = _errors(k, epsilon)
    protocol = hs.Protocol(randomizer=hs.RandomizedResponse(k=k, epsilon=epsilon), shuffler=hs.UniformShuffle(), n=1000)
    better = more_accurate(protocol)
    best = min(errors.values())
    if better is None:
        assert errors["randomized-response"] < 1.1 * 1.1 * best
        return
    table = better.randomizer.table
    assert table is not None
    assert errors[table.kind] <= 1.1 * best * (1 + 1e-6)
    assert errors[table.kind] * 1.1 <= errors["randomized-response"] * (1 + 1e-6)
    assert better.randomizer.local_epsilon <= epsilon * (1 + 1e-12)


def test_the_better_mechanism_holds_what_is_promised() -> None:
    """100,000 values: a report of hashing is two numbers, that of a set would be a thousand."""
    randomizer = hs.RandomizedResponse(k=100_000, epsilon=2.0)
    protocol = hs.Protocol(randomizer=randomizer, shuffler=hs.UniformShuffle(), n=2_000_000)
    (about,) = deployment_warnings(protocol, delta=1e-9)
    assert "0.035 for a small share" in about.sentence
    assert 'kind = "local-hashing" has a smaller standard error at the same local epsilon: 6.1e-04' in about.advice
    better = more_accurate(protocol)
    assert better is not None
    assert len(better.randomizer.layout.names) == 2
    assert people_to_show(better) < people_to_show(protocol) / 50
    assert more_accurate(better) is None


SURVEY = """
population = { n = 50, k = 400 }
randomizer = { kind = "randomized-response", epsilon = 2.0 }
shuffler = { kind = "uniform" }
targets = { delta = 0.1, epsilon = 2.5 }
run = { seed = 1 }
"""


def test_every_verb_gives_the_same_warnings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Collect and calibrate were silent where delta is 0.1."""
    monkeypatch.chdir(tmp_path)
    Path("survey.toml").write_text(SURVEY, encoding="utf-8")
    pl.DataFrame({"value": [one % 400 for one in range(50)]}).write_parquet("people.parquet")
    verbs = {
        "collect": ["survey.toml", "--out", "out", "--input", "people.parquet", "--column", "value"],
        "estimate": ["out"],
        "calibrate": ["survey.toml"],
    }
    said = {}
    for verb, arguments in verbs.items():
        assert main([verb, *arguments]) == Exit.DONE
        lines = capsys.readouterr().err.splitlines()
        said[verb] = [line for line in lines if line.startswith("hushuffle: warning: ")]
    assert said["collect"] == said["estimate"]
    assert len(said["collect"]) == 3
    assert set(said["collect"][:2]) < set(said["calibrate"])  # the third is about the noise that calibrate found
    assert main(["assess", "survey.toml"]) == Exit.DONE
    shown = " ".join(capsys.readouterr().out.split())
    for line in said["collect"]:
        assert line.removeprefix("hushuffle: warning: ").split(". ")[0] in shown


def test_columns_share_what_is_said_of_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("survey.toml").write_text(
        """
        population = { data = "people.csv" }
        shuffler = { kind = "uniform" }
        targets = { delta = 0.1 }
        [[columns]]
        column = "a"
        categories = ["0", "1"]
        randomizer = { kind = "randomized-response", epsilon = 3.0 }
        [[columns]]
        column = "b"
        categories = ["0", "1"]
        randomizer = { kind = "randomized-response", epsilon = 6.0 }
        """,
        encoding="utf-8",
    )
    pl.DataFrame({"a": [0, 1] * 100, "b": [1, 1] * 100}).write_csv("people.csv")
    assert main(["collect", "survey.toml", "--out", "out"]) == Exit.DONE
    lines = capsys.readouterr().err.splitlines()
    assert [line[:31] for line in lines[:2]] == ["hushuffle: warning: Delta is 0.", "hushuffle: warning: b: Local ep"]
    (total,) = lines[2:]
    assert total.startswith(
        "hushuffle: warning: Local epsilon of all 2 columns together is 9.000. From 5 on, the reports"
    )
    assert main(["estimate", "out"]) == Exit.DONE
    assert capsys.readouterr().err.splitlines() == lines

from __future__ import annotations

import json
from pathlib import Path

import pytest

import hushuffle as hs
from hushuffle.cli import main
from hushuffle.cli.console import Exit

OPTIONS = ["--k", "5", "--local-epsilon", "1.5", "--epsilon", "0.8", "--delta", "1e-3"]


def answered(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["minimum-batch", *arguments]) == Exit.DONE
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["minimum-batch", *arguments]) == Exit.USAGE
    said = capsys.readouterr()
    assert not said.out
    return said.err


def test_the_batch_keeps_the_guarantee_and_one_below_does_not(capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(answered(capsys, *OPTIONS, "--json"))
    size = document["min_batch_size"]
    assert document["parameters"]["release"] == "sums"
    assert document["certificate"]["central_epsilon"]["upper"] <= 0.8
    assert document["parameters"]["randomizer"].startswith("every person reports a bit for each of 5 values")
    encoding = hs.UnaryEncoding(k=5, epsilon=1.5, encoding="symmetric")

    def central(n: int) -> hs.Bound:
        return hs.dp.epsilon(hs.Protocol(randomizer=encoding, shuffler=hs.SecureAggregation(), n=n), delta=1e-3)

    assert central(size).upper <= 0.8 * (1 + 1e-6)
    assert central(size - 1).upper > 0.8 * (1 - 1e-6)


def test_it_is_said_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    options = [*OPTIONS, "--mechanism", "randomized-response"]
    size = json.loads(answered(capsys, *options, "--json"))["min_batch_size"]
    words = " ".join(answered(capsys, *options).split())
    assert f"Smallest batch: {size:,} reports." in words
    assert "With this number of reports or more, central epsilon is at most 0.8 at delta = 0.001" in words


def test_sums_need_a_smaller_batch_than_the_shuffled_reports(capsys: pytest.CaptureFixture[str]) -> None:
    sizes = [
        json.loads(answered(capsys, *OPTIONS, "--json", "--release", release))["min_batch_size"]
        for release in ("sums", "shuffle")
    ]
    assert sizes[0] < sizes[1]
    alike = [
        json.loads(answered(capsys, *OPTIONS, "--json", "--mechanism", "randomized-response", "--release", release))[
            "min_batch_size"
        ]
        for release in ("sums", "shuffle")
    ]
    assert alike[0] == alike[1]


def test_a_specification_says_the_same(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "survey.toml"
    text = """
        population = { n = 900, k = 5 }
        randomizer = { kind = "randomized-response", epsilon = 1.5 }
        shuffler = { kind = "secure-aggregation" }
        targets = { delta = 1e-3, epsilon = 0.8 }
    """
    file.write_text(text)
    of_file = json.loads(answered(capsys, str(file), "--json"))
    of_options = json.loads(answered(capsys, *OPTIONS, "--json", "--mechanism", "randomized-response"))
    assert of_file == of_options
    assert main(["minimum-batch", str(file), "--k", "5"]) == Exit.USAGE
    assert main(["minimum-batch", str(file), "--rounds", "3"]) == Exit.USAGE
    file.write_text(text.replace(", epsilon = 0.8", ""))
    assert main(["minimum-batch", str(file)]) == Exit.USAGE
    assert "targets.epsilon: must be given, got nothing." in capsys.readouterr().err
    file.write_text(text.replace("epsilon = 1.5", 'epsilon = "inf"'))
    assert main(["minimum-batch", str(file)]) == Exit.USAGE
    assert "targets.epsilon: must be a value that some number of people achieves, got 0.8. Without noise" in (
        capsys.readouterr().err
    )


def test_rounds_and_several_reports_need_larger_batches(capsys: pytest.CaptureFixture[str]) -> None:
    options = [*OPTIONS, "--mechanism", "randomized-response", "--json"]
    sizes = [
        json.loads(answered(capsys, *options, *more))["min_batch_size"]
        for more in ((), ("--rounds", "3"), ("--reports-per-person", "2"))
    ]
    assert sizes[0] < sizes[1]
    assert sizes[0] < sizes[2]
    words = answered(capsys, *options[:-1], "--rounds", "3", "--reports-per-person", "2")
    assert "reports, at most 2 per person." in words
    assert "central epsilon of 3 batches with the same people together is at most 0.8" in " ".join(words.split())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "minimum-batch needs a specification, or all of the options --k, --local-epsilon, --epsilon, --delta."),
        (OPTIONS[:6], "minimum-batch needs a specification, or all of the options --k"),
        (["--k", "1", *OPTIONS[2:]], "--k must be an integer from 2 to 65536, got 1."),
        ([*OPTIONS[:2], "--local-epsilon", "-1", *OPTIONS[4:]], "--local-epsilon must be > 0"),
        ([*OPTIONS[:6], "--delta", "2"], "`delta` must be in (0, 1), got delta=2.0."),
        ([*OPTIONS[:2], "--local-epsilon", "inf", *OPTIONS[4:]], "Without noise, no number of people protects"),
        ([*OPTIONS, "--rounds", "0"], "`rounds` must be"),
    ],
)
def test_a_bad_option_is_named(capsys: pytest.CaptureFixture[str], given: list[str], message: str) -> None:
    said = refused(capsys, *given)
    assert message in said
    assert said.count("\n") == 1


COLUMNS = """
population = { n = 500 }
shuffler = { kind = "uniform" }
targets = { delta = 1e-2, epsilon = 0.9 }
[[columns]]
name = "one"
categories = ["a", "b"]
randomizer = { kind = "randomized-response", epsilon = 1.0 }
[[columns]]
name = "two"
categories = ["a", "b", "c"]
randomizer = { kind = "subset-selection", epsilon = 1.5, w = 1 }
"""


def test_the_batch_of_several_columns_keeps_their_guarantee_together(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "columns.toml"
    file.write_text(COLUMNS)
    document = json.loads(answered(capsys, str(file), "--json"))
    size = document["min_batch_size"]
    assert list(document["parameters"]["columns"]) == ["one", "two"]
    assert document["parameters"]["columns"]["two"]["values"] == 3

    def central(n: int) -> hs.Bound:
        one, two = hs.RandomizedResponse(k=2, epsilon=1.0), hs.SubsetSelection(k=3, epsilon=1.5, w=1)
        rounds = [hs.Protocol(randomizer=each, shuffler=hs.UniformShuffle(), n=n) for each in (one, two)]
        return hs.dp.compose(rounds, delta=1e-2)

    assert central(size).upper <= 0.9 * (1 + 1e-6)
    assert central(size - 1).upper > 0.9 * (1 - 1e-6)
    words = " ".join(answered(capsys, str(file)).split())
    assert words.startswith("2 columns together (one, two); a shuffler releases")
    assert "--dap needs a specification of one column" in refused(capsys, str(file), "--dap")
    file.write_text(COLUMNS.replace("1.0", '"inf"'))
    assert "targets.epsilon: must be a value that some number of people achieves" in refused(capsys, str(file))


def test_the_batch_of_a_sum_is_that_of_its_error(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "sum.toml"
    population = 'population = { n = 10_000, kind = "number", low = 0, high = 100, levels = 101 }\n'
    file.write_text(f"{population}sum = {{ epsilon = 1.0, delta = 1e-9, honest = 0.8 }}\n")
    assert "targets.standard_error: must be given, got nothing." in refused(capsys, str(file))
    file.write_text(file.read_text() + "targets = { standard_error = 0.5 }\n")
    document = json.loads(answered(capsys, str(file), "--json"))

    def error(n: int) -> float:
        whole = hs.SplitAndMix(low=0, high=100, levels=101, n=n, epsilon=1.0, delta=1e-9, honest=0.8)
        return whole.standard_error() / n

    size = document["min_batch_size"]
    assert error(size) <= 0.5 < error(size - 1)
    assert document["certificate"]["central_epsilon"]["upper"] == pytest.approx(1.0, rel=1e-6)
    assert "does not depend on the number of people" in " ".join(answered(capsys, str(file)).split())


def test_a_study_of_reach_has_no_batch(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "reach.toml"
    file.write_text(
        "population = { people = 100, audiences = { tv = 30, web = 20 }, bits = 100 }\n"
        'randomizer = { kind = "bit-flipping", p = 0.25 }\nshuffler = { kind = "uniform" }\n'
        "targets = { delta = 1e-3, epsilon = 1.0 }\n"
    )
    assert main(["minimum-batch", str(file)]) == Exit.USAGE
    assert "must be people with one value each for minimum-batch" in capsys.readouterr().err


def test_the_task_in_the_terms_of_dap(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--k", "5", "--local-epsilon", "1.5", "--epsilon", "1.2", "--delta", "1e-2"]
    whole = json.loads(answered(capsys, *options, "--mechanism", "randomized-response", "--dap"))
    assert list(whole) == ["schema_version", "content", "min_batch_size", "parameters", "certificate", "dap"]
    assert whole["dap"]["min_batch_size"] == whole["min_batch_size"]
    assert (whole["dap"]["vdaf_type"], whole["dap"]["vdaf_configuration"]) == (4, "0000000500000002")
    assert whole["dap"]["vdaf"] == {"type": "Prio3Histogram", "shares": 2, "length": 5, "chunk_length": 2}


def test_dap_adds_up_and_adds_no_noise(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    said = refused(capsys, *OPTIONS, "--dap", "--release", "shuffle")
    assert "--dap goes with --release sums: DAP releases nothing but sums of reports." in said
    text = (Path(__file__).parents[2] / "examples/secure-sums.toml").read_text(encoding="utf-8")
    text = text.replace("delta = 1e-9\nepsilon = 0.2", "delta = 1e-3\nepsilon = 1.0")  # a short search
    path = tmp_path / "survey.toml"
    for shuffler, reason in (
        ('kind = "uniform"', "DAP releases nothing but sums of reports."),
        ('kind = "secure-aggregation"\ncoins = 100', "DAP's aggregators add no random bits."),
    ):
        path.write_text(text.replace('kind = "secure-aggregation"', shuffler), encoding="utf-8")
        assert main(["minimum-batch", str(path), "--dap"]) == Exit.USAGE
        assert reason in " ".join(capsys.readouterr().err.split())

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import hushuffle as hs
from hushuffle.cli import main
from hushuffle.cli.console import Exit

SURVEY = """
population = { n = 900, k = 3 }
randomizer = { kind = "randomized-response", epsilon = 1.0 }
shuffler = { kind = "uniform" }
targets = { delta = 1e-6 }
"""


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("assessed")
    (folder / "survey.toml").write_text(SURVEY)
    assert main(["assess", str(folder / "survey.toml"), "--out", str(folder / "made")]) == Exit.DONE
    return (folder / "made" / "result.json").read_text()


@pytest.fixture
def assessed(result: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(result)
    return document


def test_the_result_of_an_assessment_is_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "survey.toml").write_text(SURVEY)
    assert main(["assess", str(tmp_path / "survey.toml"), "--out", str(tmp_path / "out")]) == Exit.DONE
    result = tmp_path / "out" / "result.json"
    capsys.readouterr()
    assert main(["verify", str(result)]) == Exit.DONE
    said = capsys.readouterr().out
    assert "central-dp" in said
    assert "agrees: 6, not checked: " in said
    assert said.splitlines()[-1].startswith("6 of ")
    document = json.loads(result.read_text())
    finding = next(each for each in document["findings"] if each["question"] == "central-dp")
    assert len(json.dumps(finding["certificate"])) < 1000
    low, high = finding["bound"]["lower"] * 0.9, finding["bound"]["upper"] * 0.99
    finding["bound"] |= {"lower": low, "upper": high}
    finding["certificate"]["epsilon"] = [low, high]
    result.write_text(json.dumps(document))
    assert main(["verify", str(result), "--json"]) == Exit.MISSED
    rows = json.loads(capsys.readouterr().out)["checks"]
    assert next(row["verdict"] for row in rows if row["question"] == "central-dp") == "contradicted"


def test_true_counts_are_not_in_a_certificate(tmp_path: Path) -> None:
    (tmp_path / "answers.csv").write_text("answer\n" + "a\n" * 61 + "b\n" * 29 + "c\n" * 10)
    (tmp_path / "survey.toml").write_text(
        'population = { data = "answers.csv", column = "answer", categories = ["a", "b", "c"] }\n'
        + SURVEY.partition("}\n")[2]
    )
    assert main(["assess", str(tmp_path / "survey.toml"), "--out", str(tmp_path / "out")]) == Exit.DONE
    document = json.loads((tmp_path / "out" / "result.json").read_text())
    certificate = next(each["certificate"] for each in document["findings"] if each["certificate"])
    assert max(certificate["others"]) == 99


@pytest.mark.parametrize("text", [b"{}", b"\xff\xfe", b"not JSON", b'{"findings": [{"certificate": 1, "bound": {}}]}'])
def test_another_file_is_refused(text: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "other.json").write_bytes(text)
    assert main(["verify", str(tmp_path / "other.json")]) == Exit.USAGE
    said = capsys.readouterr()
    assert not said.out
    assert "other.json" in said.err


def test_a_file_that_is_not_there_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(tmp_path / "none.json")]) == Exit.FAILED
    assert "none.json" in capsys.readouterr().err


def test_without_the_checker_its_package_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    claim = hs.dp.certificate(
        hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=1.0), shuffler=hs.UniformShuffle(), n=9), delta=0.01
    )
    (tmp_path / "claim.json").write_text(claim.to_json())
    monkeypatch.setitem(sys.modules, "shuffle_certificate", None)
    assert main(["verify", str(tmp_path / "claim.json")]) == Exit.FAILED
    assert "pip install shuffle-certificate" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("other", "name"),
    [
        ("epsilon = 1.0", "the randomizer"),
        ("truth_probability", "the randomizer"),
        ("both", "the randomizer"),
        ("k = 3", "the randomizer"),
        ("n = 900", "the number of people"),
        ('kind = "uniform"', "the shuffler"),
        ("shuffler", "the shuffler"),
        ("rounds", "the number of rounds"),
        ("reports", "reports of one person"),
        ("delta = 1e-06", "delta"),
    ],
)
def test_the_specification_of_another_deployment_is_noticed(
    other: str, name: str, assessed: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A dishonest service publishes the result of a good collection with the specification of the real one."""
    text = assessed["specification"]
    changes = {
        "epsilon = 1.0": ("epsilon = 1.0", "epsilon = 5.0"),
        "truth_probability": ("epsilon = 1.0", "truth_probability = 0.9"),
        "both": ("epsilon = 1.0", "epsilon = 5.0\ntruth_probability = 0.5761168847658291"),
        "k = 3": ("k = 3", "k = 4"),
        "n = 900": ("n = 900", "n = 90"),
        'kind = "uniform"': ('kind = "uniform"', 'kind = "scrambler"\ndummies = { kind = "geometric", mean = 9 }'),
        "shuffler": ("[shuffler]", "[statement]"),
        "rounds": ("[population]", "rounds = 40\n\n[population]"),
        "reports": ("n = 900", "n = 900\nreports_per_person = 6"),
        "delta = 1e-06": ("delta = 1e-06", "delta = 1e-07"),
    }
    assert changes[other][0] in text, text
    (tmp_path / "result.json").write_text(json.dumps(assessed | {"specification": text.replace(*changes[other])}))
    assert main(["verify", str(tmp_path / "result.json"), "--json"]) == Exit.MISSED
    row = next(row for row in json.loads(capsys.readouterr().out)["checks"] if row["question"] == "central-dp")
    assert row["verdict"] == "contradicted"
    assert name in row["reason"]


def test_keys_of_a_certificate_beside_the_findings_change_nothing(
    assessed: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    finding = next(each for each in assessed["findings"] if each["certificate"])
    finding["bound"] = finding["bound"] | {"upper": 0.001, "lower": 0.0}
    (tmp_path / "result.json").write_text(json.dumps(assessed | finding["certificate"]))
    assert main(["verify", str(tmp_path / "result.json")]) == Exit.MISSED
    assert "certificate 0" not in capsys.readouterr().out


@pytest.mark.usefixtures("no_charts")
def test_true_values_among_a_random_number_of_dummies_are_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    survey = SURVEY.replace("epsilon = 1.0", 'epsilon = "inf"').replace("1e-6", "1e-3").replace("n = 900", "n = 60")
    survey = survey.replace('"uniform"', '"scrambler", dummies = { kind = "binomial", trials = 100, p = 0.5 }')
    (tmp_path / "survey.toml").write_text(survey)
    assert main(["assess", str(tmp_path / "survey.toml"), "--out", str(tmp_path / "out")]) == Exit.DONE
    capsys.readouterr()
    assert main(["verify", str(tmp_path / "out" / "result.json"), "--json"]) == Exit.DONE
    rows = json.loads(capsys.readouterr().out)["checks"]
    assert next(row["verdict"] for row in rows if row["question"] == "central-dp") == "agrees"


def test_no_point_of_a_result_without_shuffler_is_contradicted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "survey.toml").write_text(SURVEY.replace('"uniform"', '"none"').replace("1e-6", "1e-3"))
    assert main(["assess", str(tmp_path / "survey.toml"), "--out", str(tmp_path / "out")]) == Exit.DONE
    capsys.readouterr()
    assert main(["verify", str(tmp_path / "out" / "result.json")]) == Exit.DONE

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hushuffle.assessment import calibrate as module
from hushuffle.assessment.targets import Choice
from hushuffle.cli import main
from hushuffle.cli.calibrate import _verdict
from hushuffle.cli.console import Exit
from hushuffle.specification import Specification

SPECIFICATION = """
title = "How do people get to work?"
population = { n = 900, k = 2 }
randomizer = { kind = "randomized-response", epsilon = 2 }
shuffler = { kind = "uniform" }
targets = { delta = 1e-6, TARGETS }
"""


def write(folder: Path, targets: str, epsilon: str = "2") -> str:
    text = SPECIFICATION.replace("TARGETS", targets).replace("epsilon = 2 ", f"epsilon = {epsilon} ")
    (folder / "town.toml").write_text(text, encoding="utf-8")
    return str(folder / "town.toml")


def test_targets_that_are_met(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", write(tmp_path, "epsilon = 0.2, standard_error = 0.05")]) == Exit.DONE
    said = capsys.readouterr()
    print(said.out)
    assert said.err == ""
    assert max(len(line) for line in said.out.splitlines()) <= 80
    lines = said.out.splitlines()
    assert lines[0] == "How do people get to work?"
    assert "Targets: central epsilon at most 0.2 at delta = 1e-06, standard error of a share" in said.out
    assert "largest that meets the privacy         1.370" in said.out
    assert "smallest that meets the accuracy      0.6550" in said.out
    assert "as written                             2.000" in said.out
    assert "Both targets are met by every local epsilon from 0.6550 to 1.370." in said.out
    assert list(tmp_path.iterdir()) == [tmp_path / "town.toml"]


def test_targets_that_are_not_met(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    choices, calibrate = list[Choice](), module.calibrate

    def once(*arguments: Any, **options: Any) -> Choice:
        choices.append(choices[0] if choices else calibrate(*arguments, **options))
        return choices[-1]

    monkeypatch.setitem(module.CALIBRATED, "noise", once)
    text = write(tmp_path, "epsilon = 0.2, standard_error = 0.01")
    for number, (flags, code) in enumerate((([], Exit.DONE), (["--strict"], Exit.MISSED)), start=1):
        assert main(["calibrate", text, *flags]) == code
        said = capsys.readouterr()
        needed = "No local epsilon meets both targets with 900 people: at least 2,029 are needed to meet both."
        assert needed in " ".join(said.out.split())
        assert said.err == "hushuffle: target not met: Standard error: asked at most 0.01, got 0.02252 (exact).\n"
        assert len(choices) == number


def test_every_target_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    targets = "epsilon = 0.2, local_epsilon = 1.2, reidentification = 0.5, people = 1000"
    assert main(["calibrate", write(tmp_path, targets), "--strict"]) == Exit.MISSED
    said = capsys.readouterr()
    assert "The privacy target is met by every local epsilon up to 1.199." in said.out
    assert "The limit is targets.local_epsilon." in said.out
    assert "PASS Local epsilon, if the shuffler fails: asked at most 1.2, got" in said.out
    assert said.err == "hushuffle: target not met: People: asked at least 1,000, got 900 people (exact).\n"


def test_privacy_alone_and_no_noise_as_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", write(tmp_path, "epsilon = 0.2", epsilon='"inf"')]) == Exit.DONE
    said = capsys.readouterr().out
    assert "The privacy target is met by every local epsilon up to 1.370." in said
    assert "smallest" not in said
    assert "as written                          infinity" in said


def test_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["calibrate", write(tmp_path, "epsilon = 0.2, standard_error = 0.05", epsilon='"inf"'), "--json"]
    assert main(arguments) == Exit.DONE
    said = capsys.readouterr()
    assert said.err == ""
    found = json.loads(said.out)
    assert found["schema_version"] == 1
    assert found["population"] == {"n": 900, "k": 2}
    assert found["targets"] == {"epsilon": 0.2, "delta": 1e-6, "standard_error": 0.05}
    assert found["written"]["local_epsilon"] == "infinity"
    assert found["largest_for_privacy"]["central_epsilon"]["upper"] <= 0.2
    assert found["largest_for_privacy"]["central_epsilon"]["kind"] == "bracket"
    assert found["smallest_for_accuracy"]["standard_error"] <= 0.05
    assert (found["met"], found["people_needed"]) == (True, None)


def test_json_without_accuracy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", write(tmp_path, "epsilon = 0.2"), "--json"]) == Exit.DONE
    assert json.loads(capsys.readouterr().out)["smallest_for_accuracy"] is None


def test_a_specification_without_target(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", write(tmp_path, "standard_error = 0.05")]) == Exit.USAGE
    said = capsys.readouterr()
    assert said.out == ""
    assert "targets.epsilon: must be given to calibrate, got nothing." in said.err


def test_the_verdict_on_rare_outcomes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Choice] = []
    honest = module.calibrate

    def keep(specification: Specification, **rest: object) -> Choice:
        seen.append(honest(specification, **rest))  # type: ignore[arg-type]
        return seen[-1]

    monkeypatch.setitem(module.CALIBRATED, "noise", keep)
    assert main(["calibrate", write(tmp_path, "epsilon = 0.2, standard_error = 0.01")]) == Exit.DONE
    (choice,) = seen
    assert _verdict(replace(choice, people=None)).endswith("or with any number up to 1,000,000,000.")
    assert _verdict(replace(choice, standard_error=0.5, accurate=None)).startswith(
        "Both targets are met by every local"
    )


def test_a_mechanism_without_epsilon_has_nothing_to_calibrate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = Path(write(tmp_path, "epsilon = 0.2"))
    own = text.read_text("utf-8").replace('"randomized-response", epsilon = 2', '"target-sampling", sigma = 0.5')
    text.write_text(own, encoding="utf-8")
    assert main(["calibrate", str(text)]) == Exit.USAGE
    assert "randomizer.kind: must be a mechanism whose local epsilon can be chosen" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("deployment", "points"),
    [
        (
            'population = { n = 900, k = 2 }\nrandomizer = { kind = "randomized-response", epsilon = 2 }\n'
            'shuffler = { kind = "uniform" }\ntargets = { delta = 1e-6, epsilon = 0.5 }',
            {"largest_for_privacy", "smallest_for_accuracy"},
        ),
        (
            'population = { n = 9000, k = 20 }\nrandomizer = { kind = "randomized-response", epsilon = "inf" }\n'
            'shuffler = { kind = "blanket-messages", p = 0.5 }\ntargets = { delta = 1e-6, epsilon = 0.5 }',
            {"fewest_for_privacy"},
        ),
        (
            'population = { n = 9000, kind = "number", low = 0, high = 1, levels = 11 }\n'
            "sum = { epsilon = 1.0, delta = 1e-9 }\ntargets = { epsilon = 0.5 }",
            {"most_accurate_for_privacy", "most_private_for_accuracy", "specification"},
        ),
        (
            'population = { n = 90 }\nshuffler = { kind = "uniform" }\ntargets = { delta = 1e-4, epsilon = 1.0 }\n'
            '[[columns]]\nname = "smallest"\nk = 2\nrandomizer = { kind = "randomized-response", epsilon = 1.0 }\n'
            '[[columns]]\nname = "written"\nk = 2\nrandomizer = { kind = "randomized-response", epsilon = 1.0 }',
            {"factor", "central_epsilon", "standard_error", "columns"},
        ),
    ],
    ids=["noise", "messages", "sum", "columns"],
)
def test_every_deployment_has_one_form(
    deployment: str, points: set[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "deployment.toml").write_text(deployment, encoding="utf-8")
    assert main(["calibrate", str(tmp_path / "deployment.toml"), "--json"]) == Exit.DONE
    found = json.loads(capsys.readouterr().out)
    common = {
        "schema_version",
        "content",
        "title",
        "deployment",
        "population",
        "targets",
        "rounds",
        "written",
        "people_needed",
    }
    assert set(found) == common | {"met", "binding", "verdict", "warnings"} | points
    assert set(found["targets"]) == {"epsilon", "delta", "standard_error"}
    assert found["met"] is True

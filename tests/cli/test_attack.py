from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from hushuffle.cli.attack import attack, linkage
from hushuffle.cli.console import Exit, UsageError


@pytest.fixture
def visits(tmp_path: Path) -> Path:
    rng = np.random.default_rng(1)
    rows = [f"{user},{place}" for user in range(30) for place in rng.choice([user, user // 2, 40], 20)]
    path = tmp_path / "visits.csv"
    path.write_text("\n".join(["user,item", *rows]) + "\n", encoding="utf-8")
    return path


def run(*words: str) -> object:
    return attack(list(words), result_action="return_value", exit_on_error=False, print_error=False)


def test_an_attack_is_printed_and_written(visits: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "found"
    words = ["--epsilon", "inf", "--epsilon", "2", "--events", "1", "--events", "all", "--known", "3", "--known", "10"]
    code = run("linkage", str(visits), *words, "--mechanism", "local-hashing", "--seed", "1", "--out", str(out))
    assert code == Exit.DONE
    said = capsys.readouterr()
    print(said.out)
    assert said.err == ""
    assert max(len(line) for line in said.out.splitlines()) <= 80 + len(str(out))
    assert said.out.startswith("Linkage attack on visits.csv\n")
    assert "Without noise the attacker identifies the sender among 30 people" in said.out
    assert sorted(path.name for path in out.iterdir()) == ["study.html", "study.json"]
    study = json.loads((out / "study.json").read_text(encoding="utf-8"))
    assert len(study["tables"][0]["rows"]) == 2 * 2 * 2


def test_json_is_the_file(
    visits: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("linkage", str(visits), "--json") == Exit.DONE
    said = capsys.readouterr()
    written = tmp_path / "hushuffle-out" / "linkage-visits" / "study.json"
    assert json.loads(said.out) == json.loads(written.read_text(encoding="utf-8"))
    assert [row[0] for row in json.loads(said.out)["tables"][0]["rows"]] == ["no noise"]


def test_wrong_command_lines(visits: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--epsilon must be a number or inf, got much"):
        linkage(visits, epsilon=["much"])
    with pytest.raises(UsageError, match="--events must be a number or all, got few"):
        linkage(visits, events=["few"])
    with pytest.raises(
        UsageError, match="number of events that the attacker knows of each person, or use maximum knowledge"
    ):
        linkage(visits, split="none")
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(UsageError, match="--out must be a folder"):
        linkage(visits, out=file)

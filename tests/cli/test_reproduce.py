from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from hushuffle.cli import main
from hushuffle.cli.console import Exit
from hushuffle.model import Claim, Report
from hushuffle_papers import registry as tools
from hushuffle_papers.registry import Request, Target


def quick(request: Request) -> Report:
    request.tell("half", 0.5)
    claims = (Claim(place="Figure 1", quote="A < B", sentence="A is below B.", ours="It is.", verdict="confirmed"),)
    seed = f"Seed {request.seed}."
    return Report(key="jurado2023/figure-1", title="Quick", question="Is it?", claims=claims, answers=(seed,))


def other(request: Request) -> Report:
    return replace(quick(request), key="murakami2021/table-2")


def smaller(request: Request) -> Report:
    return replace(quick(request), title="Small")


def needs_data(request: Request) -> Report:
    folder = request.folder("adult")
    return Report(key="jurado2023/figure-10a", title="Slow", question="Is it?", answers=(folder.name,))


MADE = (
    Target(name="jurado2023/figure-10a", title="A long title " * 12, build=needs_data, data=("adult",), seconds=600.0),
    Target(name="jurado2023/figure-1", title="A quick one", build=quick, seconds=0.1, quick=smaller),
    Target(name="murakami2021/table-2", title="Another paper", build=other),
)


@pytest.fixture(autouse=True)
def _made_up_targets(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    known = {target.name: target for target in sorted(MADE, key=lambda target: target.order)}
    monkeypatch.setattr(tools, "targets", lambda: known)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HUSHUFFLE_DATA", raising=False)


@pytest.mark.parametrize("arguments", [[], ["--list"], ["jurado2023", "--list"]])
def test_the_list(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", *arguments]) == Exit.DONE
    said = capsys.readouterr().out
    lines = said.splitlines()
    assert lines[0] == "jurado2023/figure-1  (about 1 s)"
    assert lines[1] == "    A quick one"
    assert "jurado2023/figure-10a  (about 10 min, needs adult)" in lines
    assert ("murakami2021/table-2  (about 1 s)" in lines) == ("jurado2023" not in arguments)
    assert max(map(len, lines)) <= 80


def test_the_list_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "--json"]) == Exit.DONE
    found = json.loads(capsys.readouterr().out)["targets"]
    assert [one["name"] for one in found] == ["jurado2023/figure-1", "jurado2023/figure-10a", "murakami2021/table-2"]
    assert found[1]["data"] == ["adult"]


def test_one_target(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "jurado2023/figure-1", "--seed", "7"]) == Exit.DONE
    said = capsys.readouterr()
    folder = Path("hushuffle-out/reproduce/jurado2023-figure-1")
    assert said.err == ""
    assert said.out == (
        "Quick\nIs it?\n\n1 claim: 1 confirmed.\nCONFIRMED A is below B (Figure 1). Here: It is.\n\n- Seed 7.\n\n"
        f"Wrote {folder}/study.html\nWrote {folder}/study.json\nWrote {folder}\n"
    )
    assert json.loads((folder / "study.json").read_text())["answers"] == ["Seed 7."]


def test_json_and_a_folder_of_choice(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "jurado2023/figure-1", "--json", "--out", "mine"]) == Exit.DONE
    assert capsys.readouterr().out == Path("mine/study.json").read_text()


def test_a_whole_paper(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "data" / "adult").mkdir(parents=True)
    assert main(["reproduce", "jurado2023", "--data", "data", "--json", "--out", "all"]) == Exit.DONE
    found = json.loads(capsys.readouterr().out)
    assert [one["key"] for one in found["studies"]] == ["jurado2023/figure-1", "jurado2023/figure-10a"]
    assert found["summary"] == json.loads(Path("all/verdicts.json").read_text())
    assert sorted(path.name for path in Path("all").iterdir()) == [
        "index.html",
        "jurado2023-figure-1",
        "jurado2023-figure-10a",
        "verdicts.json",
    ]


def test_all_papers_end_with_every_claim_and_its_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "all", "--quick"]) == Exit.FAILED
    said = capsys.readouterr()
    assert "hushuffle: skipped jurado2023/figure-10a: this target needs the data set adult." in said.err
    folder = Path("hushuffle-out/reproduce/all")
    assert said.out.splitlines() == [
        "jurado2023/figure-1: 1 claim: 1 holds on other data.",
        "murakami2021/table-2: 1 claim: 1 confirmed.",
        "",
        "2 claims: 1 confirmed, 1 holds on other data.",
        f"Wrote {folder}/index.html",
        f"Wrote {folder}/verdicts.json",
    ]
    assert json.loads((folder / "jurado2023-figure-1" / "study.json").read_text())["title"] == "Small"
    found = json.loads((folder / "verdicts.json").read_text())
    assert [(claim["target"], claim["verdict"]) for claim in found["claims"]] == [
        ("jurado2023/figure-1", "holds on other data"),
        ("murakami2021/table-2", "confirmed"),
    ]
    assert found["tables"][0]["rows"] == [["jurado2023", 1, 1, 0, 0, 1, 0, 0], ["murakami2021", 1, 1, 1, 0, 0, 0, 0]]
    assert "Not run: jurado2023/figure-10a" in found["answers"][0]
    page = (folder / "index.html").read_text()
    assert '<a href="jurado2023-figure-1/study.html">jurado2023/figure-1</a>' in page


def test_one_data_set_may_be_elsewhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "my census").mkdir()
    (tmp_path / "data").mkdir()
    assert main(["reproduce", "jurado2023/figure-10a", "--data", "data", "--data", "adult=my census"]) == Exit.DONE
    assert "- my census" in capsys.readouterr().out
    assert main(["reproduce", "jurado2023/figure-10a", "--data", "adlut=my census"]) == Exit.USAGE
    assert "--data: adlut is no data set of these targets. Use one of adult." in capsys.readouterr().err
    assert main(["reproduce", "jurado2023/figure-10a", "--data", "adult=nowhere"]) == Exit.USAGE
    assert "--data: adult must be a folder, but nowhere is not a folder." in capsys.readouterr().err


def test_data_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "adult").mkdir()
    monkeypatch.setenv("HUSHUFFLE_DATA", str(tmp_path))
    assert main(["reproduce", "jurado2023/figure-10a"]) == Exit.DONE
    assert "- adult" in capsys.readouterr().out


def test_missing_data(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "jurado2023/figure-10a"]) == Exit.FAILED
    said = capsys.readouterr()
    assert said.out == ""
    assert "hushuffle: this target needs the data set adult." in said.err
    assert not Path("hushuffle-out").exists()


def test_a_paper_with_missing_data_is_done_in_part(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "jurado2023"]) == Exit.FAILED
    said = capsys.readouterr()
    assert "Wrote hushuffle-out/reproduce/jurado2023/index.html" in said.out
    assert Path("hushuffle-out/reproduce/jurado2023/jurado2023-figure-1/study.html").exists()
    assert "hushuffle: skipped jurado2023/figure-10a: this target needs" in said.err


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("jurado2023/figure-11", "Did you mean jurado2023/figure-1"),
        ("figure-1", "Did you mean jurado2023/figure-1?"),
        ("jurado2022", "Did you mean jurado2023"),
        ("something", "`hushuffle reproduce` lists all of them."),
    ],
)
def test_wrong_names(name: str, hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", name]) == Exit.USAGE
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f'hushuffle: There is no target "{name}".')
    assert hint in said.err
    assert said.err.count("\n") == 1


def test_a_file_in_the_place_of_the_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine").write_text("a file")
    assert main(["reproduce", "jurado2023/figure-1", "--out", "mine"]) == Exit.USAGE
    assert "--out must be a folder, but mine is a file." in capsys.readouterr().err


def test_a_wrong_seed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "jurado2023/figure-1", "--seed", "-1"]) == Exit.USAGE
    assert "--seed must be a whole number >= 0, got -1." in capsys.readouterr().err


@pytest.mark.parametrize("plain", [True, False])
def test_a_terminal_gets_color_and_progress(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], plain: bool
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "dumb" if plain else "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((300, 50)))
    assert main(["reproduce", "jurado2023/figure-1"]) == Exit.DONE
    assert ("\x1b[1m" in capsys.readouterr().out) == (not plain)

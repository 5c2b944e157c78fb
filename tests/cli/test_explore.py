from __future__ import annotations

from pathlib import Path

import pytest

from hushuffle.cli import main
from hushuffle.cli.console import Exit

SURVEY = """
population = { n = 40, k = 2 }
randomizer = { kind = "randomized-response", epsilon = 1.0 }
shuffler = { kind = "none" }
targets = { delta = 1e-3 }
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("survey.toml").write_text(SURVEY, encoding="utf-8")


def test_one_page_is_written_where_it_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, file in (
        ([], "hushuffle-out/explore-survey/explorer.html"),
        (["--out", "folder"], "folder/explorer.html"),
        (["--out", "page.html"], "page.html"),
    ):
        assert main(["explore", "survey.toml", *arguments]) == Exit.DONE
        assert capsys.readouterr().out == f"Wrote {file}: open it in a browser.\n"
        assert Path(file).read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
        assert [path.name for path in Path(file).parent.iterdir() if path.suffix == ".html"] == [Path(file).name]


def test_a_place_that_cannot_be_written_is_noticed_before_the_work(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hushuffle.assessment.explore.explore", lambda *_, **__: pytest.fail("the work was begun"))
    Path("page.html").mkdir()
    for out in ("survey.toml", "survey.toml/page.html", "page.html"):
        assert main(["explore", "survey.toml", "--out", out]) != Exit.DONE
        assert out.partition("/")[0] in capsys.readouterr().err
    assert list(Path("page.html").iterdir()) == []


def test_a_specification_without_sliders_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    text = SURVEY.replace("epsilon = 1.0", 'epsilon = "inf"')
    Path("survey.toml").write_text(text, encoding="utf-8")
    assert main(["explore", "survey.toml"]) == Exit.USAGE
    assert "must add noise to explore" in capsys.readouterr().err
    assert not Path("hushuffle-out").exists()

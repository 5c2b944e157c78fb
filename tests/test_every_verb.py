"""Every mechanism behind every shuffler, with every verb of the program that takes a specification, all targets set."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import polars as pl
import pytest

from hushuffle.cli import main
from hushuffle.cli.console import Exit
from hushuffle.mechanisms.shufflers import Reveals
from scripts import script

ROOT: Final = Path(__file__).parent.parent
support: Final = script("docs/support")
pytestmark = pytest.mark.usefixtures("few_points", "no_charts")
PAGE: Final = support.PAGE.read_text(encoding="utf-8")
VERBS: Final = ("assess", "verify", "calibrate", "minimum-batch", "compare", "explore", "audit", "collect", "estimate")
ANSWERED: Final = (Exit.DONE, Exit.MISSED)
NAMED: Final = [place for place, (_, toml) in enumerate(support.MECHANISMS) if toml is not None]
CELLS: Final = [
    (shuffler, mechanism)
    for shuffler, (title, _, written) in enumerate(support.SHUFFLERS)
    if written is not None
    for mechanism in support.asked_of(title)
    if mechanism in NAMED
]


def written(folder: Path, shuffler: int, mechanism: int) -> Path:
    """Write a specification with all targets, and its data."""
    _, release, about = support.SHUFFLERS[shuffler]
    people = {"answer": list("abcd" * (support.PEOPLE // 4)), "place": [0] * support.PEOPLE}
    pl.DataFrame(people).write_csv(folder / "answers.csv")
    targets = "epsilon = 2.0\nlocal_epsilon = 3.0\nstandard_error = 0.2\n"
    if release.reveals is not Reveals.NOISY_ORDER:
        targets += "guessing = 0.9\nreidentification = 0.5\n"
    (folder / "survey.toml").write_text(
        '[population]\ndata = "answers.csv"\ncolumn = "answer"\nperson = "none"\n'
        'categories = ["a", "b", "c", "d"]\n'
        f"[randomizer]\n{support.MECHANISMS[mechanism][1]}\n[shuffler]\n{about}\n"
        f"[targets]\ndelta = {support.DELTA}\n{targets}",
        encoding="utf-8",
    )
    return folder / "survey.toml"


def called(verb: str, survey: Path) -> list[str]:
    """Return the words of a command line."""
    folder, own = survey.parent, str(survey)
    more = {
        "verify": [str(folder / "assess" / "result.json")],
        "compare": [own, own, "--out", str(folder / "compare")],
        "estimate": [str(folder / "collect")],
        "audit": [own, "--trials", "2000", "--seed", "1", "--out", str(folder / "audit")],
    }
    alone = [own] if verb in ("calibrate", "minimum-batch") else [own, "--out", str(folder / verb)]
    return [verb, *more.get(verb, alone)]


def verbs_of(
    shuffler: int, mechanism: int, folder: Path, capsys: pytest.CaptureFixture[str], *, but: Sequence[str] = ()
) -> dict[str, tuple[int, str]]:
    """Return what each verb says of a survey: its code, and its words where there is no answer."""
    survey, seen = written(folder, shuffler, mechanism), dict[str, tuple[int, str]]()
    for verb in VERBS:
        before = {"verify": "assess", "estimate": "collect"}.get(verb)
        if verb in but or (before is not None and seen[before][0] not in ANSWERED):
            continue
        code = main(called(verb, survey))
        shown = capsys.readouterr()
        words = shown.err or (shown.out if verb == "verify" else "")
        seen[verb] = code, " ".join(words.replace(str(folder), "").split())
    return seen


def cells_of(shuffler: int, mechanism: int) -> dict[str, str]:
    """Return what the page says of the verbs."""
    title = support.SHUFFLERS[shuffler][0]
    part = PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0].partition("| what can be done |")[2]
    head, _, *rows = part.splitlines()
    names = [name.strip() for name in head.strip("|").split("|")]
    row = rows[list(support.asked_of(title)).index(mechanism)]
    return dict(zip(names, [cell.strip() for cell in row.strip("|").split("|")][1:], strict=True))


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Charts, scenarios and sliders ask the same questions many times."""
    for name in ("_EPSILONS", "_DELTAS", "_DUMMIES", "_TIMES", "_OTHER_K"):
        monkeypatch.setattr(f"hushuffle.assessment.explore.{name}", ())
    monkeypatch.setattr("hushuffle.assessment.explore._PER_DECADE", 1)
    monkeypatch.setattr("hushuffle.assessment.explore._beyond", lambda _: ())
    for name in ("_FINE_EPSILONS", "_COARSE_EPSILONS"):
        monkeypatch.setattr(f"hushuffle.assessment.explore_grid.{name}", ())


def check(seen: dict[str, tuple[int, str]], cells: dict[str, str], *, noisy: bool) -> None:
    """Every verb answers or refuses in words of its own, and those of the page do what it says."""
    for verb, (code, words) in seen.items():
        assert code in (*ANSWERED, Exit.FAILED, Exit.USAGE), verb
        assert "unexpected error" not in words, f"{verb}: {words}"
        assert code in ANSWERED or words, verb
    shown = {"assess": "assess, all targets", "calibrate": "calibrate, all targets", "collect": "files, here"}
    for verb, name in shown.items():
        if verb in seen and (noisy or verb != "collect"):  # a target of local epsilon stops reports without noise
            assert (seen[verb][0] in ANSWERED) == (cells[name] == "yes"), (verb, seen[verb], cells[name])
    for verb in ("compare", "audit"):
        assert verb not in seen or seen[verb][0] in ANSWERED or seen["assess"][0] not in ANSWERED, verb


@pytest.mark.parametrize(
    ("shuffler", "mechanism"),
    [(0, 0), (1, 10), (5, 0), (7, 12)],
    ids=["unshuffled", "rounded Gaussian noise", "noisy and messages", "augmented"],
)
def test_verbs_answer_or_refuse(
    shuffler: int, mechanism: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two of them: calibration of rounded Gaussian noise, and of messages beside noisy reports, ended in an error."""
    seen = verbs_of(shuffler, mechanism, tmp_path, capsys, but=("verify", "explore", "compare", "audit"))
    noisy = support.MECHANISMS[mechanism][0].local_epsilon < float("inf")
    check(seen, cells_of(shuffler, mechanism), noisy=noisy)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("shuffler", "mechanism"), CELLS)
def test_every_mechanism_behind_every_shuffler_with_every_verb(
    shuffler: int, mechanism: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = verbs_of(shuffler, mechanism, tmp_path, capsys)
    noisy = support.MECHANISMS[mechanism][0].local_epsilon < float("inf")
    check(seen, cells_of(shuffler, mechanism), noisy=noisy)

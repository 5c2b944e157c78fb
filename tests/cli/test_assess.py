from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import hushuffle
from hushuffle.cli import main
from hushuffle.cli.console import Exit
from hushuffle.errors import DataError, MissingDependencyError, NumericalError
from hushuffle.model import Bound, Target
from hushuffle.specification.reading import Collection

SPECIFICATION = """
population = { n = 100, k = 4 }
randomizer = { kind = "randomized-response", epsilon = 2 }
shuffler = { kind = "uniform" }
targets = { delta = 1e-6 }
"""
FILES = ("report.html", "result.json", "specification.toml")


class Fakes:
    """The workflow and the report, as `assess` calls them."""

    def __init__(self) -> None:
        self.error: BaseException | None = None
        self.targets: tuple[Target, ...] = ()
        self.told = False
        self.width = 0
        self.color = False

    def assess(
        self, collection: Collection, *, base_folder: Path, progress: Callable[[str, float], None] | None
    ) -> Any:
        assert collection.columns[""].population.read(base_folder).n == 100
        assert base_folder == Path("specs")
        self.told = progress is not None
        if progress is not None:
            progress("counting [red]", 0.5)
            progress("done", 2.0)
        if self.error is not None:
            raise self.error
        return SimpleNamespace(targets=self.targets)

    def write(self, _: Any, folder: Path, *, beside: object) -> list[Path]:
        assert beside is None
        folder.mkdir(parents=True, exist_ok=True)
        for name in FILES:
            text = '{"schema_version": 1}\n' if name == "result.json" else name
            (folder / name).write_text(text, encoding="utf-8")
        return [folder / name for name in FILES]

    def terminal(self, _: Any, width: int = 80, *, color: bool = False) -> str:
        self.width, self.color = width, color
        return "summary\n"


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Fakes:
    found = Fakes()
    for name, functions in (("assessment.deployment", ["assess"]), ("report", ["write", "terminal"])):
        module = ModuleType(f"hushuffle.{name}")
        for function in functions:
            setattr(module, function, getattr(found, function))
        monkeypatch.setitem(sys.modules, f"hushuffle.{name}", module)
    monkeypatch.setattr(hushuffle, "report", sys.modules["hushuffle.report"], raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / "town.toml").write_text(SPECIFICATION, encoding="utf-8")
    return found


def on_a_terminal(monkeypatch: pytest.MonkeyPatch, *streams: str, columns: int = 70) -> None:
    for stream in streams:
        monkeypatch.setattr(getattr(sys, stream), "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)


@pytest.mark.usefixtures("fakes")
def test_writes_beside_the_reader_and_says_where(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["assess", "specs/town.toml"]) == 0
    said = capsys.readouterr()
    folder = Path("hushuffle-out") / "town"
    assert said.out == "summary\n\n" + "".join(f"Wrote {folder / name}\n" for name in FILES)
    assert said.err == ""
    assert sorted(path.name for path in folder.iterdir()) == sorted(FILES)


@pytest.mark.usefixtures("fakes")
def test_json_says_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["assess", "specs/town.toml", "--json", "--out", "deep/down"]) == 0
    said = capsys.readouterr()
    assert (said.out, said.err) == ('{"schema_version": 1}\n', "")
    assert Path("deep/down/result.json").exists()


def test_a_terminal_gets_color_width_and_progress(
    fakes: Fakes, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    on_a_terminal(monkeypatch, "stdout", "stderr")
    assert main(["assess", "specs/town.toml"]) == 0
    assert (fakes.width, fakes.color, fakes.told) == (70, True, True)
    said = capsys.readouterr()
    assert "counting" not in said.out
    assert "done" in said.err


@pytest.mark.parametrize(("columns", "width"), [(20, 40), (500, 120)])
def test_very_narrow_and_very_wide_terminals(
    fakes: Fakes, monkeypatch: pytest.MonkeyPatch, columns: int, width: int
) -> None:
    on_a_terminal(monkeypatch, "stdout", columns=columns)
    monkeypatch.setenv("NO_COLOR", "1")
    assert main(["assess", "specs/town.toml"]) == 0
    assert (fakes.width, fakes.color, fakes.told) == (width, False, False)


def test_programs_get_no_progress(fakes: Fakes, monkeypatch: pytest.MonkeyPatch) -> None:
    on_a_terminal(monkeypatch, "stderr")
    assert main(["assess", "specs/town.toml", "--json"]) == 0
    assert not fakes.told
    assert main(["assess", "specs/town.toml", "--overwrite"]) == 0
    assert fakes.told
    assert (fakes.width, fakes.color) == (80, False)


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (DataError("people.csv is empty."), Exit.FAILED, "people.csv is empty."),
        (NumericalError("too wide a bracket."), Exit.FAILED, "too wide a bracket."),
        (MissingDependencyError("install it."), Exit.FAILED, "install it."),
        (FileNotFoundError(2, "No such file", "specs/x/.y.new"), Exit.FAILED, "specs: No such file."),
        (PermissionError(13, "Permission denied", "found/ann.csv"), Exit.FAILED, "Permission denied."),
        (OSError("odd"), Exit.FAILED, "OSError."),
        (MemoryError(), Exit.FAILED, "there is not enough memory."),
        (KeyboardInterrupt(), Exit.INTERRUPTED, "interrupted; no file is incomplete."),
    ],
)
def test_failures(
    fakes: Fakes, capsys: pytest.CaptureFixture[str], error: BaseException, code: Exit, message: str
) -> None:
    fakes.error = error
    assert main(["assess", "specs/town.toml", "--out=specs"]) == code
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", f"hushuffle: {message}\n")
    assert not Path("hushuffle-out").exists()


class Panic(BaseException):
    """As engines in other languages raise it."""


@pytest.mark.parametrize("kind", [ZeroDivisionError, Panic])
def test_mistakes_in_the_program_are_placed_and_quote_nothing(
    fakes: Fakes, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, kind: type[BaseException]
) -> None:
    fakes.error = kind("could not parse 'SECRET' as a number")
    assert main(["assess", "specs/town.toml"]) == Exit.FAILED
    said = capsys.readouterr().err
    assert said.startswith(f"hushuffle: an unexpected error ({kind.__name__}) at hushuffle/cli/assess.py:")
    assert "SECRET" not in said
    monkeypatch.setenv("HUSHUFFLE_TRACEBACK", "1")
    with pytest.raises(kind, match="SECRET"):
        main(["assess", "specs/town.toml"])


@pytest.mark.usefixtures("fakes")
def test_a_wrong_specification(capsys: pytest.CaptureFixture[str]) -> None:
    Path("specs/town.toml").write_text(SPECIFICATION.replace("1e-6", "2").replace("100", "0"), encoding="utf-8")
    assert main(["assess", "specs/town.toml"]) == Exit.USAGE
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "hushuffle: specs/town.toml: 2 problems"
    assert [line.split(":")[0] for line in lines[1:]] == ["  population.n", "  targets.delta"]
    assert not Path("hushuffle-out").exists()


@pytest.mark.usefixtures("fakes")
def test_folders_that_cannot_be_written_are_refused_beforehand(capsys: pytest.CaptureFixture[str]) -> None:
    Path("taken").write_text("x", encoding="utf-8")
    assert main(["assess", "specs/town.toml", "--out", "taken"]) == Exit.USAGE
    assert "--out must be a folder, but taken is a file." in capsys.readouterr().err


@pytest.mark.usefixtures("fakes")
def test_the_specification_itself_is_never_overwritten(capsys: pytest.CaptureFixture[str]) -> None:
    Path("specs/town.toml").rename("specs/specification.toml")
    assert main(["assess", "specs/specification.toml", "--out", "specs"]) == Exit.USAGE
    assert "would overwrite specs/specification.toml" in capsys.readouterr().err
    assert Path("specs/specification.toml").read_text(encoding="utf-8") == SPECIFICATION


KNOWN = Target(key="people", topic="People", rule="at least", asked=80, got=Bound.exact(100.0, unit="people"))
TARGETS = {
    "met": KNOWN,
    "missed": replace(KNOWN, asked=2000),
    "unknown": Target(
        key="epsilon", topic="Central epsilon", rule="at most", asked=0.5, got=None, reason="There is no law."
    ),
}


@pytest.mark.parametrize(("options", "code"), [([], Exit.DONE), (["--strict"], Exit.MISSED)])
@pytest.mark.parametrize(
    ("names", "lines"),
    [
        ((), []),
        (("met",), []),
        (("met", "missed"), ["People: asked at least 2,000, got 100 people (exact)."]),
        (("unknown", "met"), ["Central epsilon: asked at most 0.5, not known. There is no law."]),
    ],
)
def test_every_target_counts_and_one_that_nobody_knows_is_not_met(
    fakes: Fakes,
    capsys: pytest.CaptureFixture[str],
    names: tuple[str, ...],
    lines: list[str],
    options: list[str],
    code: Exit,
) -> None:
    fakes.targets = tuple(TARGETS[name] for name in names)
    assert main(["assess", "specs/town.toml", *options]) == (code if lines else Exit.DONE)
    assert capsys.readouterr().err == "".join(f"hushuffle: target not met: {line}\n" for line in lines)


@pytest.mark.parametrize(
    ("population", "randomizer"),
    [
        ("{ n = 500, k = 2 }", '{ kind = "randomized-response", epsilon = 2.0 }'),
        ("{ n = 500, k = 2 }", '{ kind = "randomized-response", epsilon = "inf" }'),
        (
            "{ people = 500, audiences = { a = 40, b = 30 }, bits = 512, hashes = 1 }",
            '{ kind = "bit-flipping", p = 0.3 }',
        ),
    ],
)
def test_a_real_deployment_that_misses_its_epsilon(tmp_path: Path, population: str, randomizer: str) -> None:
    """It was green: only the standard error counted."""
    specification = tmp_path / "survey.toml"
    text = f"""
        population = {population}
        randomizer = {randomizer}
        shuffler = {{ kind = "uniform" }}
        targets = {{ delta = 1e-6, epsilon = 0.01 }}
        run = {{ repetitions = 0 }}
    """
    specification.write_text(text, encoding="utf-8")
    assert main(["assess", str(specification), "--strict", "--json", "--out", str(tmp_path / "out")]) == Exit.MISSED

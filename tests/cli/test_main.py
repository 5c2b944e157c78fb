from __future__ import annotations

import io
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NoReturn

import pytest

from hushuffle import cli
from hushuffle._version import __version__
from hushuffle.cli import main
from hushuffle.cli.console import Exit


def test_help_says_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    said = capsys.readouterr().out
    for word in ("assess", "schema", "--version", "Exit codes", *(str(code.value) for code in Exit)):
        assert word in said


def test_no_arguments_mean_help(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["hushuffle"])
    assert main() == 0
    assert "Usage: hushuffle COMMAND" in capsys.readouterr().out


def test_help_of_a_verb(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["assess", "--help"]) == 0
    said = capsys.readouterr().out
    for word in ("SPECIFICATION", "--out", "--json", "--strict", "Exit codes"):
        assert word in said


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"hushuffle {__version__}\n"


def test_schema(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "Deployment"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["asess", "x.toml"], 'Did you mean "assess"?'),
        (["assess"], "SPECIFICATION requires an argument"),
        (["assess", "x.toml", "--outt", "y"], "Unknown option: --outt"),
        (["assess", "x.toml", "y.toml"], "y.toml"),
    ],
)
def test_wrong_command_lines(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == Exit.USAGE
    said = capsys.readouterr()
    assert message in said.err
    assert said.err.startswith("hushuffle: ")
    assert said.err.count("\n") == 1
    assert said.out == ""


class Gone(io.StringIO):
    """Standard output whose reader has left."""

    def __init__(self, place: Any) -> None:
        super().__init__()
        self.place = place

    def write(self, _: str) -> NoReturn:
        raise BrokenPipeError

    def fileno(self) -> int:
        number: int = self.place.fileno()
        return number


def test_a_reader_that_leaves_is_no_trouble(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with tempfile.TemporaryFile() as place:
        monkeypatch.setattr(sys, "stdout", Gone(place))
        assert main(["schema"]) == Exit.FAILED
        monkeypatch.undo()
    assert capsys.readouterr().err == ""


def test_terminals_without_greek_letters(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setattr(cli, "_app", lambda *_: lambda _: sys.stdout.write("ε\n") and None)
    assert main([]) == 0
    assert stream.buffer.getvalue() == b"?\n"


def test_the_program_itself(tmp_path: Path) -> None:
    asked = [sys.executable, "-m", "hushuffle", "assess", "nobody.toml"]
    ended = subprocess.run(asked, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == "hushuffle: nobody.toml: 1 problem\n  file: must exist, got no such file.\n"
    assert list(tmp_path.iterdir()) == []


def test_help_does_not_wait_for_numerics() -> None:
    heavy = "{'numpy', 'polars', 'pydantic', 'scipy', 'vl_convert', 'jinja2'}"
    code = f"import sys; from hushuffle.cli import main; main(['--help']); sys.exit(len({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0


def test_a_problem_that_shows_late_names_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "town.toml"
    file.write_text(
        "population = { n = 900, k = 3 }\nrandomizer = { kind = 'randomized-response', epsilon = 1.0 }\n"
        "shuffler = { kind = 'uniform' }\ntargets = { delta = 1e-6 }\n"
    )
    assert main(["calibrate", str(file)]) == Exit.USAGE
    assert capsys.readouterr().err.startswith(f"hushuffle: {file}: 1 problem\n  targets.epsilon: must be given")

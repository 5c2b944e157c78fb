"""Nothing is late: outputs are checked before the work, Ctrl-C is heard from the start, a terminal shows a start."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hushuffle.cli import main
from hushuffle.cli.console import Exit

SURVEY = """
population = { n = 900, k = 3 }
randomizer = { kind = "randomized-response", epsilon = 1.0 }
shuffler = { kind = "uniform" }
targets = { delta = 1e-6 }
"""
HOOKED = """
import builtins, os, signal, sys
real = builtins.__import__
def hooked(name, *rest, **named):
    if name == {module!r}:
        {action}
    return real(name, *rest, **named)
builtins.__import__ = hooked
sys.argv = ["hushuffle", *{arguments!r}]
from hushuffle.__main__ import main
sys.exit(main())
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "survey.toml").write_text(SURVEY, encoding="utf-8")
    (tmp_path / "people.csv").write_text("x\n" + "a\nb\n" * 50, encoding="utf-8")
    (tmp_path / "file").write_text("kept", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def never(*_: object, **__: object) -> None:
    pytest.fail("the work was begun")


def test_an_output_that_cannot_be_written_is_noticed_before_the_work(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", "people.csv", "--out", "people.toml"]) == Exit.DONE
    draft = (folder / "people.toml").read_text(encoding="utf-8")
    (folder / "people.toml").write_text(draft.replace('person = "?"', 'person = "none"'), encoding="utf-8")
    assert main(["collect", "people.toml", "--out", "made"]) == Exit.DONE
    monkeypatch.setattr("hushuffle.assessment.deployment.assess", never)
    monkeypatch.setattr("hushuffle.collection.estimate.tally_columns", never)
    monkeypatch.setattr("hushuffle.collection.collect.prepare", never)
    monkeypatch.setattr("hushuffle.tables.inspection.inspect_table", never)
    monkeypatch.setattr("hushuffle_papers.registry.reproduce", never)
    capsys.readouterr()
    for arguments, message in (
        (["assess", "survey.toml", "--out", "file/x"], "file/x is no folder: "),
        (["assess", "survey.toml", "--out", "/proc/x"], "/proc/x cannot be written: "),
        (["collect", "people.toml", "--out", "file/x"], "file/x cannot be written: Not a directory."),
        (["estimate", "made", "--out", "none/x.csv"], "none/x.csv cannot be written: the folder none does not exist."),
        (
            ["inspect", "people.csv", "--out", "none/x.toml"],
            "none/x.toml cannot be written: the folder none does not exist.",
        ),
        (["reproduce", "buffling/figure-2", "--out", "file/x"], "file/x is no folder: "),
    ):
        assert main(arguments) == Exit.FAILED, arguments
        shown = capsys.readouterr().err
        assert message in shown, arguments
    assert (folder / "file").read_text(encoding="utf-8") == "kept"


def test_an_earlier_report_is_replaced_only_if_that_is_asked_for(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = folder / "hushuffle-out" / "survey"
    assert main(["assess", "survey.toml"]) == Exit.DONE
    before = (report / "report.html").read_bytes()
    (folder / "survey.toml").write_text(f'title = "Anew"\n{SURVEY}', encoding="utf-8")
    assert main(["assess", "survey.toml"]) == Exit.USAGE
    assert "hushuffle-out/survey holds report.html already. Choose another --out, or pass --overwrite" in (
        capsys.readouterr().err
    )
    assert (report / "report.html").read_bytes() == before
    assert main(["assess", "survey.toml", "--overwrite"]) == Exit.DONE
    assert "Anew" in (report / "report.html").read_text(encoding="utf-8")


def hooked(module: str, action: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", HOOKED.format(module=module, action=action, arguments=arguments)]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("module", ["cyclopts", "pydantic", "hushuffle.assessment.deployment", "jinja2"])
def test_ctrl_c_is_heard_from_the_start(module: str) -> None:
    interrupt = "os.kill(os.getpid(), signal.SIGINT)"
    ended = subprocess.run(
        hooked(module, interrupt, "assess", "survey.toml"), capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout) == (Exit.INTERRUPTED, "")
    assert ended.stderr.strip() == "hushuffle: interrupted; no file is incomplete."


@pytest.mark.usefixtures("folder")
def test_ctrl_c_that_is_ignored_stays_ignored() -> None:
    def ignore() -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    interrupt = "os.kill(os.getpid(), signal.SIGINT)"
    command = hooked("cyclopts", interrupt, "schema")
    ended = subprocess.run(command, capture_output=True, check=False, preexec_fn=ignore)
    assert ended.returncode == Exit.DONE


def on_terminal(command: list[str]) -> str:
    """Return what a program writes to a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(command, stdout=theirs, stderr=theirs, stdin=theirs)
    os.close(theirs)
    parts = []
    read: Callable[[], bytes] = lambda: os.read(ours, 1 << 16)  # noqa: E731
    try:
        while part := read():
            parts.append(part)
    except OSError:  # the other end is closed
        pass
    process.wait()
    os.close(ours)
    return b"".join(parts).decode()


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("arguments", [["calibrate", "survey.toml"], ["inspect", "people.csv"]])
def test_a_terminal_shows_that_it_starts_before_anything_heavy_is_loaded(arguments: list[str]) -> None:
    for module in ("pydantic", "polars"):
        shown = on_terminal(hooked(module, 'sys.stderr.write("HEAVY"); sys.stderr.flush()', *arguments))
        if "HEAVY" in shown:
            assert shown.index("starting ...") < shown.index("HEAVY")
        rest = shown.rpartition("starting ...")[2]
        assert "\x1b[K" in rest


@pytest.mark.usefixtures("folder")
def test_an_error_takes_the_place_of_the_start() -> None:
    assert "starting" not in on_terminal(hooked("x", "pass", "schema"))  # which loads nothing heavy
    shown = on_terminal(hooked("x", "pass", "assess", "nobody.toml"))
    assert "starting ...\r\x1b[Khushuffle: nobody.toml" in shown

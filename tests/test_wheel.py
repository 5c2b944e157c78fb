"""The wheel is what people install: built, installed in an environment of its own, and used on an example inside it."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROGRAMS = "Scripts" if sys.platform == "win32" else "bin"
UNREACHABLE = (
    "No matching distribution",
    "Could not find a version",
    "NewConnectionError",
    "Could not install packages",
)


def run(*command: str | Path, folder: Path) -> str:
    """Run a command without what this process knows of the source tree."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def install(python: str | Path, *arguments: str | Path, folder: Path) -> None:
    """Run pip, or skip the test if no package index can be reached."""
    try:
        run(python, "-m", "pip", *arguments, folder=folder)
    except AssertionError as error:
        if any(reason in str(error) for reason in UNREACHABLE):
            pytest.skip(f"pip {arguments[0]}: no package index can be reached")
        raise


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The wheels of all packages by their import names."""
    folder = tmp_path_factory.mktemp("wheels")
    here = ("--no-build-isolation",) if importlib.util.find_spec("hatchling") else ()
    packages = sorted(path.parent for path in ROOT.glob("packages/*/pyproject.toml"))
    install(sys.executable, "wheel", *packages, "--no-deps", "--quiet", "--wheel-dir", folder, *here, folder=folder)
    return {wheel.name.partition("-")[0]: wheel for wheel in folder.glob("*.whl")}


@pytest.fixture(scope="module")
def wheel(wheels: dict[str, Path]) -> Path:
    return wheels["hushuffle"]


def environment(folder: Path) -> Path:
    """Return the Python of a new virtual environment."""
    venv.create(folder, with_pip=True)
    return folder / PROGRAMS / "python"


def use(python: Path, folder: Path) -> None:
    """Copy the examples out of the installed package, and assess one of them."""
    program = python.with_name("hushuffle")
    place = run(python, "-c", "import hushuffle; print(hushuffle.__file__)", folder=folder)
    assert Path(place.strip()).is_relative_to(python.parents[1])
    assert run(program, "--version", folder=folder).startswith("hushuffle ")
    run(program, "examples", "mine", folder=folder)
    assert "Anyone who sees" in run(program, "assess", "mine/no-data.toml", "--out", "report", folder=folder)
    written = {file.name for file in (folder / "report").iterdir()}
    assert written == {"report.html", "result.json", "specification.toml", "dpia.md"}


def test_the_wheel_holds_the_package_the_examples_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.partition("/")[0] for name in names}
    assert {top.rpartition(".")[2] for top in tops} == {"hushuffle", "dist-info"}
    shipped = {name.rpartition("/")[2] for name in names if name.startswith("hushuffle/examples/")}
    assert shipped == {file.name for file in (ROOT / "examples").rglob("*") if file.is_file() and file.suffix != ".pyc"}
    assert "hushuffle/py.typed" in names


def test_every_other_wheel_holds_its_package_and_nothing_else(wheels: dict[str, Path]) -> None:
    assert wheels.keys() == {"hushuffle", "hushuffle_network", "hushuffle_papers", "shuffle_certificate"}
    for name, other in wheels.items():
        tops = {file.partition("/")[0] for file in zipfile.ZipFile(other).namelist()}
        assert {top for top in tops if not top.endswith(".dist-info")} == {name}
        assert f"{name}/py.typed" in zipfile.ZipFile(other).namelist()


@pytest.mark.slow
def test_the_wheels_work_beside_installed_packages(wheels: dict[str, Path], tmp_path: Path) -> None:
    """Only our packages are installed; numpy and the rest are those of the environment that runs the tests."""
    python = environment(tmp_path / "venv")
    install(python, "install", "--no-deps", "--no-index", "--quiet", *wheels.values(), folder=tmp_path)
    purelib = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", folder=tmp_path)
    # A path in such a file is added to sys.path; the files of this kind in that place are not read, so that an
    # editable hushuffle there stays out of the way.
    Path(purelib.strip(), "borrowed.pth").write_text(f"{sysconfig.get_path('purelib')}\n", encoding="utf-8")
    use(python, tmp_path)

    program = python.with_name("hushuffle")
    assert "hidden among" in run(program, "plan", "analyse", "mine/histogram.toml", folder=tmp_path)
    assert "figure-3" in run(program, "reproduce", folder=tmp_path)
    checked = run(python.with_name("shuffle-certificate"), "report/result.json", folder=tmp_path)
    assert checked == run(program, "verify", "report/result.json", folder=tmp_path)


@pytest.mark.slow
def test_the_library_alone_names_what_a_verb_needs(wheel: Path, tmp_path: Path) -> None:
    """Each step says what to install; what it names is enough for the next."""
    python = environment(tmp_path / "venv")
    install(python, "install", "--quiet", wheel, folder=tmp_path)
    ended = subprocess.run([python.with_name("hushuffle"), "--help"], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == "hushuffle: cyclopts is not installed. Install it with: pip install 'hushuffle[program]'\n"
    install(python, "install", "--quiet", f"{wheel}[program]", folder=tmp_path)
    use(python, tmp_path)
    missing = {"plan": "hushuffle-network", "reproduce": "hushuffle-papers", "verify": "shuffle-certificate"}
    for verb, package in missing.items():
        line = [str(python.with_name("hushuffle")), verb, "report/result.json"]
        ended = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert ended.returncode == 1
        assert f"pip install {package}" in ended.stderr

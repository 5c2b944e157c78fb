"""One profile for property tests: the same examples on every run, no clock. What keys are used for stays in a test."""

from __future__ import annotations

import gc
import itertools
import os
import signal
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Final

import pytest
from hypothesis import settings

TESTS = Path(__file__).parent

# Tests run side by side, one for each core: a second thread in each would only wait for the first, and busily. NumPy
# asks when it is loaded, which is later.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Without stored bytecode, every worker and every program that a test starts compiles all modules anew.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

settings.register_profile("hushuffle", derandomize=True, deadline=None, database=None)
settings.load_profile("hushuffle")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage among modules and tests, now or later: all of it stays. A third of collection's time."""
    gc.disable()
    collected = yield
    gc.freeze()
    gc.enable()
    return collected


@pytest.fixture(scope="session", autouse=True)
def interruptions() -> None:
    """Hear Ctrl-C, in this process and in those it starts: what a shell runs in the background ignores it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def memories(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Give paths of folders that nobody else has; few tests create theirs, so that few folders must be removed."""
    base = tmp_path_factory.mktemp("states")
    return (base / str(number) for number in itertools.count())


@pytest.fixture(autouse=True)
def memory_of_keys(memories: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every test a memory of its own."""
    monkeypatch.setenv("HUSHUFFLE_STATE", str(next(memories)))


ROOMS_WITH_FEW_POINTS: Final = {"answers", "assessment", "attacks_on_us", "cli", "collection", "specification"}
"""Folders whose tests assess many deployments, and seldom look at charts or at how tight a bound is."""

FEW_POINTS: Final[dict[str, object]] = {
    "assessment.charts._NOISES": (0.5,),
    "assessment.charts._TIMES": (0.1,),
    "assessment.reach.charts._NOISES": (0.4,),
    "assessment.reach.charts._FACTORS": (0.1,),
    "assessment.findings._POINTS": 3,
    "curves.laws.slices.ROOM": 0.0,
    "curves.pairs.dominating.FINE": 0.2,
    "curves.pairs.dominating._GROWTH": 0.1,
}
"""Charts of this deployment's own point and another: the rest repeats them. Bounds hold all the same without slices of
small crowds, and with tables of fewer points, but are less tight."""


def _set(patch: pytest.MonkeyPatch) -> None:
    for name, value in FEW_POINTS.items():
        patch.setattr(f"hushuffle.{name}", value)


@pytest.fixture(scope="module")
def few_points() -> Iterator[pytest.MonkeyPatch]:
    """Evaluate few points."""
    with pytest.MonkeyPatch.context() as patch:
        _set(patch)
        yield patch


@pytest.fixture(scope="module", autouse=True)
def points_of_room(request: pytest.FixtureRequest) -> None:
    """Evaluate few points in these folders, but for tests that use `all_points`."""
    if ROOMS_WITH_FEW_POINTS & {folder.name for folder in request.path.parents if folder.parent == TESTS}:
        request.getfixturevalue("few_points")


@pytest.fixture
def all_points(few_points: pytest.MonkeyPatch) -> Iterator[None]:
    """Evaluate all points."""
    few_points.undo()
    yield
    _set(few_points)


@pytest.fixture
def no_charts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out charts and scenarios, which take most of the time of an assessment; no figure rests on them."""
    for name in ("charts.privacy_charts", "charts.guessing_charts", "chapters.scenarios"):
        monkeypatch.setattr(f"hushuffle.assessment.{name}", lambda *_, **__: ())

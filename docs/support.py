"""What answers what, asked of the library: python docs/support.py writes the page.

Nothing is listed by hand: a cell is the kind of figure that the library returned, or why it refused.
"""

from __future__ import annotations

import importlib.util
import math
import tempfile
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from unittest.mock import patch

import numpy as np
import polars as pl

import hushuffle as hs
from hushuffle.assessment.calibrate import calibrate
from hushuffle.assessment.deployment import assess
from hushuffle.collection import spark
from hushuffle.collection.collect import collect
from hushuffle.errors import HushuffleError, SpecificationError
from hushuffle.estimation import heavy_hitters
from hushuffle.mechanisms.shufflers import Reveals
from hushuffle.specification import parse

PAGE = Path(__file__).parent / "reference" / "support.md"
PEOPLE, _K, DELTA = 200, 4, 1e-4
_NONE = "none: "
_ROWS = [[0.7, 0.1, 0.1, 0.1], [0.2, 0.6, 0.1, 0.1], [0.1, 0.2, 0.5, 0.2], [0.1, 0.1, 0.1, 0.7]]

# A mechanism of four values, and how [randomizer] says it.
MECHANISMS = (
    (hs.RandomizedResponse(k=_K, epsilon=1.0), 'kind = "randomized-response"\nepsilon = 1.0'),
    (hs.LocalHashing(k=_K, g=2, epsilon=1.0), 'kind = "local-hashing"\ng = 2\nepsilon = 1.0'),
    (hs.SubsetSelection(k=_K, w=2, epsilon=1.0), 'kind = "subset-selection"\nw = 2\nepsilon = 1.0'),
    (hs.UnaryEncoding(k=_K, epsilon=1.0), 'kind = "unary-encoding"\nepsilon = 1.0'),
    (hs.HadamardResponse(k=_K, epsilon=1.0), 'kind = "hadamard-response"\nepsilon = 1.0'),
    (hs.MatrixRandomizer(channel=hs.Channel(matrix=_ROWS)), f'kind = "matrix"\nmatrix = {_ROWS}'),
    (hs.TargetSampling(targets=_K, sigma=0.5), 'kind = "target-sampling"\nsigma = 0.5'),
    (hs.BitFlipping(width=2, p=0.2), 'kind = "bit-flipping"\np = 0.2'),
    (hs.SquareWave(bins=_K, epsilon=1.0), 'kind = "square-wave"\nepsilon = 1.0'),
    (hs.DiscreteLaplace(levels=_K, epsilon=1.0), 'kind = "discrete-laplace"\nepsilon = 1.0'),
    (hs.RoundedGaussian(levels=_K, epsilon=1.0), 'kind = "rounded-gaussian"\nepsilon = 1.0'),
    (hs.RoundedResponse(levels=_K, epsilon=1.0, low=0.0, high=1.0), None),
    (hs.RandomizedResponse(k=_K, epsilon=math.inf), 'kind = "randomized-response"\nepsilon = "inf"'),
    (hs.LocalHashing(k=_K, g=8, epsilon=math.inf), 'kind = "local-hashing"\ng = 8\nepsilon = "inf"'),
)
SHUFFLERS = (
    ("No shuffler", hs.NoShuffle(), 'kind = "none"'),
    ("Uniform shuffle", hs.UniformShuffle(), 'kind = "uniform"'),
    ("Scrambler, 5 dummies", hs.Scrambler(dummies=5), 'kind = "scrambler"\ndummies = 5'),
    ("Sums only", hs.SecureAggregation(), 'kind = "secure-aggregation"'),
    (
        "Mallows shuffle",
        hs.MallowsShuffle(reference=range(PEOPLE), theta=0.1),
        'kind = "mallows"\nalpha = 1.0\ngroups = { column = "place" }',
    ),
    ("Blanket messages of people", hs.BlanketMessages(p=1.0), 'kind = "blanket-messages"\np = 1.0'),
    ("Fake reports of each value", hs.FakesPerValue(p=0.5), 'kind = "fakes-per-value"\np = 0.5'),
    (
        "Augmented shuffle",
        hs.AugmentedShuffle.pure(epsilon=1.0),
        'kind = "augmented"\ntrusted = true\npure_epsilon = 1.0',
    ),
)

# Where people send messages the figures of other noisy mechanisms are those behind a scrambler.
_ASKED_OF = {"Blanket messages of people": (0, 12, 13), "Fake reports of each value": (12,), "Augmented shuffle": (12,)}

Ask = Callable[[hs.Protocol], object]


def _estimated(asked: hs.Protocol) -> hs.Estimate:
    values = np.arange(asked.n) % _K
    if isinstance(asked.shuffler, hs.SecureAggregation):
        return hs.estimate(asked.sums(values), protocol=asked)
    return hs.estimate(asked.collect(values), protocol=asked)


_LEVEL = [1 / _K] * _K
FIGURES: dict[str, Ask] = {
    "central ε": lambda asked: hs.dp.epsilon(asked, delta=DELTA),
    "two rounds": lambda asked: hs.dp.compose([(asked, 2)], delta=DELTA),
    "two waves": lambda asked: hs.dp.waves(asked, waves=2, delta=DELTA),
    "guess": hs.qif.vulnerability,
    "guess, shares known": lambda asked: hs.qif.iid_vulnerability(asked, frequencies=_LEVEL),
    "name the sender": hs.pie.bayes_error,
    "bits of identity": hs.pie.alpha,
}
USES: dict[str, Ask] = {
    "shares": _estimated,
    "heavy hitters": lambda asked: heavy_hitters(_estimated(asked), protocol=asked),
    "Sybil clients": lambda asked: hs.poisoning_gain(asked, fakes=1),
    "calibrate": lambda asked: hs.dp.calibrate(asked, parameter="epsilon", epsilon=0.5, delta=DELTA),
}
ENGINES = ("files, here", "files, Spark")
VERBS: dict[str, Callable[[str, Path], object]] = {
    "assess, all targets": lambda text, folder: assess(parse(text), base_folder=folder),
    "calibrate, all targets": lambda text, folder: calibrate(parse(text), base_folder=folder),
}
_TARGETS = "epsilon = 2.0\nlocal_epsilon = 3.0\nstandard_error = 0.2\n"
_GUESSES = "guessing = 0.9\nreidentification = 0.5\n"
"""A file with neighbourhoods has no adversary who guesses."""
_SLOW = ("hushuffle.assessment.charts.privacy_charts", "hushuffle.assessment.charts.guessing_charts")


def _here(text: str, folder: Path) -> str:
    collect(parse(text), out=folder / "out", base_folder=folder)
    return "yes"


def _bare(ask: Callable[[str, Path], object], text: str, folder: Path) -> str:
    """Ask without charts and scenarios, which take most of the time and answer nothing else."""
    with (
        patch(_SLOW[0], lambda *_, **__: ()),
        patch(_SLOW[1], lambda *_, **__: ()),
        patch("hushuffle.assessment.chapters.scenarios", lambda *_, **__: ()),
    ):
        ask(text, folder)
    return "yes"


def _spark(text: str) -> str:
    with patch.object(spark, "check_installed"):  # what it supports, wherever this is asked
        spark.check(parse(text))
    return "yes"


def answer(ask: Callable[[], object]) -> str:
    """Return what a question is answered with: the kind of its figure, or why there is none."""
    try:
        found = ask()
    except SpecificationError as error:
        return _NONE + " ".join(str(problem) for problem in error.problems)
    except HushuffleError as error:
        return _NONE + " ".join(str(error).split())
    kind = getattr(found, "kind", None)
    return kind if isinstance(kind, str) else "yes"


def asked_of(title: str) -> Sequence[int]:
    """Return the mechanisms that are asked behind a shuffler."""
    return _ASKED_OF.get(title, range(len(MECHANISMS)))


def answers(mechanism: int, shuffler: int) -> tuple[list[str], list[str]]:
    """Return what is learned and what it is used for, of one mechanism behind one shuffler."""
    randomizer, toml = MECHANISMS[mechanism]
    _, release, written = SHUFFLERS[shuffler]

    def made(ask: Ask) -> object:
        return ask(hs.Protocol(randomizer=randomizer, shuffler=release, n=PEOPLE))

    learned = [answer(partial(made, ask)) for ask in FIGURES.values()]
    used = [answer(partial(made, ask)) for ask in USES.values()]
    if toml is None or written is None:
        unnamed = f"{_NONE}It has no name in specifications: it is for the library."
        return learned, [*used, *([unnamed] * (len(ENGINES) + len(VERBS)))]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        people = {"answer": list("abcd" * (PEOPLE // _K)), "place": [0] * PEOPLE}
        pl.DataFrame(people).write_csv(folder / "answers.csv")
        text = (
            '[population]\ndata = "answers.csv"\ncolumn = "answer"\nperson = "none"\n'
            'categories = ["a", "b", "c", "d"]\n'
            f"[randomizer]\n{toml}\n[shuffler]\n{written}\n[targets]\ndelta = {DELTA}\n"
        )
        here = answer(partial(_here, text, folder))
        text += _TARGETS + ("" if release.reveals is Reveals.NOISY_ORDER else _GUESSES)
        verbs = [answer(partial(_bare, ask, text, folder)) for ask in VERBS.values()]
        return learned, [*used, here, answer(partial(_spark, text)) if here == "yes" else here, *verbs]


def _shown(cell: str, reasons: list[str]) -> str:
    return f"none [{reasons.index(cell) + 1}](#why-none)" if cell in reasons else cell


def _table(
    head: str, questions: Iterable[str], asked: Sequence[int], rows: Sequence[Sequence[str]], reasons: list[str]
) -> list[str]:
    lines = ["| " + " | ".join([head, *questions]) + " |"]
    lines.append("|" + "---|" * (1 + len(rows[0])))
    for place, row in zip(asked, rows, strict=True):
        mechanism = MECHANISMS[place][0]
        name = type(mechanism).__name__
        noise = "" if math.isfinite(mechanism.local_epsilon) else ", no noise"
        cells = [_shown(cell, reasons) for cell in row]
        lines.append("| " + " | ".join([f"[{name}](library.md#hushuffle.{name}){noise}", *cells]) + " |")
    return [*lines, ""]


def kinds() -> ModuleType:
    """Return the module of the table of kinds and commands."""
    place = importlib.util.spec_from_file_location("kinds", Path(__file__).with_name("kinds.py"))
    assert place is not None
    assert place.loader is not None
    module = importlib.util.module_from_spec(place)
    place.loader.exec_module(module)
    return module


def kinds_table(reasons: list[str]) -> list[str]:
    """Return the lines of the table of kinds and commands; their reasons are added to `reasons`."""
    module, lines = kinds(), list[str]()
    for kind in module.KINDS:
        cells = [text for text, _ in module.row(kind).values()]
        reasons += [text for text in dict.fromkeys(cells) if text.startswith(_NONE) and text not in reasons]
        lines.append("| " + " | ".join([kind, *(_shown(text, reasons) for text in cells)]) + " |")
    head = ["| " + " | ".join(["kind", *module.VERBS]) + " |", "|" + "---|" * (1 + len(module.VERBS))]
    return ["## Kinds of deployment", "", _KINDS, *head, *lines, ""]


def page() -> str:
    """Return the page."""
    reasons = list[str]()
    parts = [_HEAD, *kinds_table(reasons)]
    for place, (title, *_) in enumerate(SHUFFLERS):
        asked = asked_of(title)
        rows = [answers(mechanism, place) for mechanism in asked]
        seen = [cell for row in rows for part in row for cell in part if cell.startswith(_NONE)]
        reasons += [cell for cell in dict.fromkeys(seen) if cell not in reasons]
        parts += [f"## {title}", ""]
        parts += _table("what an observer learns", FIGURES, asked, [learned for learned, _ in rows], reasons)
        parts += _table("what can be done", [*USES, *ENGINES, *VERBS], asked, [used for _, used in rows], reasons)
    parts += ["## Why none", "", *(f"{number}. {text[len(_NONE) :]}" for number, text in enumerate(reasons, 1))]
    return "\n".join(parts) + "\n"


_HEAD = f"""# What answers what

Questions that any mechanism can be asked, behind every shuffler, in a small collection: {PEOPLE} people, {_K} values.
A cell is the [kind of the figure](../explanation/kinds-of-figures.md); "yes" where there is an answer that is no
such figure; or "none", with the reason. "upper" and "lower" are proved on that side only. Files are collected here,
and on Spark if its check lets the specification through. Verbs have targets of central and local epsilon,
standard error, guessing and re-identification. Where people send messages, noisy reports of any mechanism
are as behind a scrambler.

`python docs/support.py` asks again and writes this page. How wide the brackets of central ε are:
[what is tight where](what-is-tight.md). Order, Bloom filters and traffic
have questions of their own: [order](../explanation/adversaries.md#order-privacy),
[filters](../explanation/adversaries.md#bloom-filters), [traffic](../explanation/network-security.md).
"""

_KINDS = """\
Each cell is a run of the program on synthetic data. "yes": the command works; inspect, init and choose write a
specification of this kind. "in part": verify confirms other figures than the central ε.
"""

if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

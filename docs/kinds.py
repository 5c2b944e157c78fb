"""Which command works for which kind of deployment: the rows of a table on the page that support.py writes.

The program runs on synthetic data. A cell is "yes", "in part", or "none: " and the words of the program's refusal.
"""

from __future__ import annotations

import io
import os
import re
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

import numpy as np
import polars as pl

from hushuffle.cli import main
from hushuffle.cli.console import Exit

PEOPLE = 600
NONE = "none: "
_OTHERS = "The command writes specifications, but none of this kind: change one, or copy one of `hushuffle examples`."
_UNIFORM = '[shuffler]\nkind = "uniform"\n'
_RESPONSE = '[randomizer]\nkind = "randomized-response"\nepsilon = 2.0\n'
_TABLE = '[population]\ndata = "people.csv"\nperson = "none"\n'
_ANSWER = 'column = "answer"\ncategories = ["a", "b", "c", "d"]\n'
_PLACE = 'column = "place"\ncategories = ["0", "1", "2"]\n'
_MINUTES = 'column = "minutes"\nkind = "number"\nlow = 0\nhigh = 120\nlevels = 5\n'
_TARGETS = "[targets]\ndelta = 1e-4\nepsilon = 4.0\nstandard_error = 0.3\n"
_RUN = f"{_TARGETS}[run]\nrepetitions = 2\nseed = 1\n"
_SHARES = f"{_TABLE}{_ANSWER}{_RESPONSE}{_UNIFORM}{_RUN}"
_NUMBERS = f"{_TABLE}{_MINUTES}{_RESPONSE}{_UNIFORM}{_RUN}"
_OF_A_COLUMN = _RESPONSE.replace("[", "[columns.", 1)
_OF_A_GROUP = _RESPONSE.replace("[", "[groups.", 1)
_DUMMIES = 'kind = "scrambler"\ndummies = { kind = "binomial", trials = 200, p = 0.25 }'


def _with(text: str, *changes: tuple[str, str]) -> str:
    for before, after in changes:
        assert before in text, before
        text = text.replace(before, after, 1)
    return text


def _behind(shuffler: str, *changes: tuple[str, str]) -> str:
    return _with(_SHARES, ('kind = "uniform"', shuffler), *changes)


_OWN = ('"none"', '"id"')
# A kind of deployment, and a specification of it.
KINDS: Mapping[str, str] = {
    "shares of one column": _SHARES,
    "shares of several columns": (
        f"{_TABLE}[[columns]]\n{_ANSWER}{_OF_A_COLUMN}[[columns]]\n{_PLACE}{_OF_A_COLUMN}{_UNIFORM}{_TARGETS}"
    ),
    "shares, several reports of a person": _with(
        _SHARES, ("people", "visits"), ('"none"', '"id"\nreports_per_person = 2')
    ),
    "shares, fresh reports in 2 rounds": f"rounds = 2\n{_SHARES}",
    "shares, memoized reports in 2 rounds": f"rounds = 2\nmemoised = true\n{_with(_SHARES, _OWN)}",
    "shares, blanket messages": _behind('kind = "blanket-messages"\np = 1.0', ("epsilon = 2.0", 'epsilon = "inf"')),
    "shares, a random number of dummies": _behind(_DUMMIES),
    "shares, sums of bits": _behind('kind = "secure-aggregation"', ("randomized-response", "unary-encoding")),
    "shares, noisy order": _behind('kind = "mallows"\nalpha = 4.0\ngroups = { column = "place" }'),
    "shares, groups with different randomizers": (
        f'group_column = "group"\n{_TABLE}{_ANSWER}[[groups]]\nname = "first"\n{_OF_A_GROUP}'
        f'[[groups]]\nname = "second"\n{_with(_OF_A_GROUP, ("2.0", "3.0"))}{_UNIFORM}{_TARGETS}'
    ),
    "numbers: the mean": _NUMBERS,
    "numbers: quantiles": _with(_NUMBERS, ("randomized-response", "square-wave")),
    "numbers: the sum": (
        f"{_TABLE}{_MINUTES}[sum]\nepsilon = 2.0\ndelta = 1e-4\nhonest = 0.9\n[targets]\nstandard_error = 20.0\n"
    ),
    "reach of audiences": (
        '[population]\npublishers = { tv = "tv.csv", web = "web.csv" }\ncolumn = "id"\nkey_file = "reach.key"\n'
        f'bits = 1000\n[randomizer]\nkind = "bit-flipping"\np = 0.2\n{_UNIFORM}{_RUN}'
    ),
    "plan of a query": (
        '[query]\nkind = "aggregate"\ngenerated = { people = 1000 }\ngrouping_sets = [["age"], ["bmi"]]\n'
        "columns = { age = 4, bmi = 4 }\npartitions = 4\n[traffic]\nsigma = 0.3\ndummies = 50\n"
        "[targets]\ndelta = 1e-4\nepsilon = 4.0\n"
    ),
}
_SURVEY = "survey.toml"
_WIDE = ("--most-messages", "12", "--most-dummies", "100", "--secure-aggregation")
_KEYED = ("--key-file", "survey.key", "--id", "ID", "--round")
_ARRIVING = ("--batches", "--min-batch", "10", "--input", "arrivals")
# A verb, its words, and the verbs that write what it reads: if all of them refuse, their cell is its cell.
VERBS: Mapping[str, tuple[Sequence[str], Sequence[str]]] = {
    "inspect": (("inspect", "DATA", "--out", "inspect/draft.toml"), ()),
    "init": (("init", "init/draft.toml"), ()),
    "assess": (("assess", _SURVEY, "--out", "assess"), ()),
    "calibrate": (("calibrate", _SURVEY), ()),
    "choose": (("choose", _SURVEY, *_WIDE, "--out", "choose"), ()),
    "compare": (("compare", _SURVEY, _SURVEY), ()),
    "explore": (("explore", _SURVEY, "--out", "explore"), ()),
    "collect": (("collect", _SURVEY, "--out", "collect"), ()),
    "collect, key": (("collect", _SURVEY, "--out", "collect, key", *_KEYED, "1", "--new-key"), ()),
    "collect, second round": (("collect", _SURVEY, "--out", "again", *_KEYED, "2"), ("collect, key",)),
    "collect, batches": (("collect", _SURVEY, "--out", "batches", *_ARRIVING), ()),
    "collect, budget": (("collect", _SURVEY, "--out", "budgeted", "--budget", "budget.toml"), ()),
    "estimate": (("estimate", "READ"), ("collect", "collect, key")),
    "audit": (("audit", _SURVEY, "--trials", "1000", "--seed", "1", "--out", "audit"), ()),
    "verify": (("verify", "assess/result.json"), ("assess",)),
    "minimum-batch": (("minimum-batch", _SURVEY), ()),
}
# Options of inspect for kinds other than shares of one column.
_OPTIONS: Mapping[str, Sequence[str]] = {
    "shares of several columns": ("--column", "answer", "--column", "place"),
    "shares, several reports of a person": ("--column", "answer", "--person", "id"),
    "numbers: the mean": ("--column", "minutes"),
}
WRITES = ("inspect", "init", "choose")
"""Verbs that write specifications: they work for a kind if a specification that they write is of this kind."""
_ANSWERS = "no, yes\n2000\n{rounds}1\n5\nc\nc\n-\n-\n"
# Answers to the questions of init, in the order in which it asks them.
_SAID = {
    "shares of several columns": "columns\na: no, yes; b: 3\n2000\n1\n5\nc\nc\n-\n-\n",
    "shares, blanket messages": "no, yes\n2000\n1\n1\n5\nc\ne\n-\n-\n",
    "numbers: the mean": "number\n0 to 120\n5\n2000\n1\n1\n\nc\nc\n-\n-\n",
    "numbers: the sum": "sum\n0 to 120\n2000\n1\n\nc\n90\n-\n-\n",
    "shares, several reports of a person": "a, b\n2000\n1\n2\n5\nc\nc\n-\n-\n",
    "shares, fresh reports in 2 rounds": _ANSWERS.format(rounds="2\noften\n"),
    "shares, memoized reports in 2 rounds": _ANSWERS.format(rounds="2\n0\n"),
}


def _table(kind: str) -> str:
    """Return the name of the table in a specification, or that of the common table."""
    named = re.search(r'"(\w+)\.csv"', KINDS[kind])
    return "people" if named is None else named[1]


def write(kind: str, folder: Path) -> None:
    """Write a specification of a kind, and synthetic data."""
    chance = np.random.default_rng(1)
    answers = {"answer": chance.choice(list("abcd"), PEOPLE), "minutes": chance.integers(0, 121, PEOPLE)}
    people = pl.DataFrame({"id": [f"p{number}" for number in range(PEOPLE)], "place": np.arange(PEOPLE) % 3, **answers})
    people = people.with_columns(group=pl.Series(["first", "second"] * (PEOPLE // 2)))
    visits = pl.concat([people, people]).with_row_index("visit")
    tables = {"people": people, "visits": visits, "tv": people[:400], "web": people[200:]}
    for name in ("arrivals", "inspect", "init"):
        (folder / name).mkdir()
    for name, table in tables.items():
        table.write_csv(folder / f"{name}.csv")
    tables[_table(kind)].write_csv(folder / "arrivals" / "first.csv")
    (folder / "reach.key").write_text("5a" * 32, encoding="utf-8")
    (folder / "reach.key").chmod(0o600)
    (folder / "budget.toml").write_text("epsilon = 8.0\ndelta = 1e-2\n", encoding="utf-8")
    (folder / _SURVEY).write_text(KINDS[kind], encoding="utf-8")


@contextmanager
def bare(folder: Path) -> Iterator[None]:
    """Work in a folder, without charts, scenarios and most stops of sliders: they take most of the time."""
    assessment, before = "hushuffle.assessment", Path.cwd()
    stops = [f"explore.{name}" for name in ("_EPSILONS", "_DELTAS", "_DUMMIES", "_TIMES", "_OTHER_K")]
    with ExitStack() as stack:
        for name in ("charts.privacy_charts", "charts.guessing_charts", "chapters.scenarios", "explore._beyond"):
            stack.enter_context(patch(f"{assessment}.{name}", lambda *_, **__: ()))
        for name in (*stops, "explore_grid._FINE_EPSILONS", "explore_grid._COARSE_EPSILONS"):
            stack.enter_context(patch(f"{assessment}.{name}", ()))
        stack.enter_context(patch(f"{assessment}.explore._PER_DECADE", 1))
        stack.enter_context(patch.dict(os.environ, HUSHUFFLE_STATE=str(folder / "state")))
        stack.callback(os.chdir, before)
        os.chdir(folder)
        yield


def run(kind: str, verb: str, folder: Path) -> tuple[int, str, str]:
    """Run a verb on the files of a kind, and return its exit code, output and errors."""
    read = "collect" if (folder / "collect").exists() else "collect, key"
    places = {"DATA": f"{_table(kind)}.csv", "ID": "visit" if _table(kind) == "visits" else "id", "READ": read}
    options = _OPTIONS.get(kind, ()) if verb == "inspect" else ()
    words = [places.get(word, word) for word in (*VERBS[verb][0], *options)]
    with (
        bare(folder),
        redirect_stdout(io.StringIO()) as shown,
        redirect_stderr(io.StringIO()) as errors,
        patch("sys.stdin", io.StringIO(_SAID.get(kind, _ANSWERS.format(rounds="1\n")))),
    ):
        code = main(words)
    return code, shown.getvalue(), errors.getvalue().replace(f"{folder}{os.sep}", "")


def _signature(text: str) -> tuple[object, ...]:
    """Return what makes a specification one of its kind."""
    read = tomllib.loads(text)
    population, shuffler = read.get("population", {}), read.get("shuffler", {})
    return (
        *(key in read for key in ("columns", "groups", "sum", "query")),
        *(read.get("rounds", 1) > 1, read.get("memoised", False)),
        *(key in population for key in ("reports_per_person", "publishers")),
        *(population.get("kind"), shuffler.get("kind"), isinstance(shuffler.get("dummies"), dict)),
        read.get("randomizer", {}).get("kind") == "square-wave",
    )


def cell(kind: str, verb: str, folder: Path) -> tuple[str, int]:
    """Run a verb, and return its cell and its exit code."""
    code, shown, errors = run(kind, verb, folder)
    if verb in WRITES and code == Exit.DONE:
        drafts = [_signature(file.read_text(encoding="utf-8")) for file in (folder / verb).rglob("*.toml")]
        return "yes" if _signature(KINDS[kind]) in drafts else NONE + _OTHERS, code
    if verb == "verify":
        if code == Exit.DONE:
            return "in part" if re.search(r"^central-dp .*not checked", shown, re.MULTILINE) else "yes", code
        refused = re.search(r"^(\S+ \S+).* contradicted.*\n +(.*)$", shown, re.MULTILINE)
        return NONE + ("No figure has a certificate." if refused is None else f"{refused[1]}: {refused[2]}."), code
    if code == Exit.DONE:
        return "yes", code
    refusal = errors.rpartition("hushuffle: ")[2].partition(" (`hushuffle COMMAND --help`")[0]
    return NONE + re.sub(r"^\S+: \d+ problems? ", "", " ".join(refusal.split())), code


def row(kind: str, verbs: Iterable[str] = VERBS) -> dict[str, tuple[str, int]]:
    """Return the cells and exit codes of a kind."""
    cells: dict[str, tuple[str, int]] = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place).resolve()
        write(kind, folder)
        for verb in verbs:
            sources = [cells[source] for source in VERBS[verb][1] if source in cells]
            refused = bool(sources) and all(source[0].startswith(NONE) for source in sources)
            cells[verb] = sources[0] if refused else cell(kind, verb, folder)
    return cells

"""Certificates of every kind, and the verdict that a checker must reach: `PYTHONPATH=tests python FILE` writes them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hushuffle as hs
from hushuffle import report
from hushuffle.assessment.deployment import assess
from hushuffle.questions.dp.certificate import of_rounds
from hushuffle.specification import parse

Document = dict[str, Any]
Changes = dict[str, tuple[str, Callable[[Document], object]]]

FILE = Path(__file__).parents[2] / "packages" / "shuffle-certificate" / "vectors" / "certificates.json"
AGREES, CONTRADICTED, NOT_SHOWN, NOT_CHECKED, MALFORMED = (
    "agrees",
    "contradicted",
    "not shown",
    "not checked",
    "malformed",
)
PAIR, NOISY, CLEAR = (hs.RandomizedResponse(k=k, epsilon=epsilon) for k, epsilon in ((2, 1.0), (3, 1.0), (3, 2.0)))
TRUE = hs.RandomizedResponse(k=5, epsilon=math.inf)
MATRIX = hs.MatrixRandomizer([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]])
BITS = hs.UnaryEncoding(k=3, epsilon=1.5, encoding="optimized")
UNIFORM, NUMBERS = hs.UniformShuffle(), hs.DummyLaw.of({0: 0.25, 3: 0.5, 40: 0.25})

CLAIMS: tuple[tuple[str, Any, Any, int, float, dict[str, int]], ...] = (
    ("two values", PAIR, UNIFORM, 30, 1e-3, {}),
    ("two values", hs.RandomizedResponse(k=2, epsilon=3.0), UNIFORM, 100, 1e-6, {}),
    ("two values", PAIR, hs.Scrambler(dummies=40), 50, 1e-4, {}),
    ("two values", hs.BitFlipping(width=1, p=0.2), UNIFORM, 60, 1e-4, {}),
    ("randomized response", NOISY, UNIFORM, 10, 1e-3, {}),
    ("randomized response", hs.RandomizedResponse(k=5, epsilon=2.0), UNIFORM, 300, 1e-6, {}),
    ("randomized response", hs.RandomizedResponse(k=100, epsilon=4.0), UNIFORM, 200, 1e-5, {}),
    ("randomized response", hs.RandomizedResponse(k=4, epsilon=1.5), hs.Scrambler(dummies=7), 60, 1e-4, {}),
    ("matrix", MATRIX, UNIFORM, 5, 1e-2, {}),
    ("matrix", hs.SubsetSelection(k=6, w=2, epsilon=0.5), UNIFORM, 3, 1e-2, {}),
    ("matrix", hs.HadamardResponse(k=3, epsilon=1.0), UNIFORM, 4, 1e-2, {}),
    ("matrix", hs.LocalHashing(k=3, g=2, epsilon=1.0), UNIFORM, 4, 1e-2, {}),
    ("a large matrix", hs.UnaryEncoding(k=3, epsilon=1.0, encoding="symmetric"), UNIFORM, 1000, 1e-6, {}),
    ("senders", NOISY, hs.NoShuffle(), 100, 1e-3, {}),
    ("senders", MATRIX, hs.NoShuffle(), 100, 1e-3, {}),
    ("colluding people", NOISY, hs.BlanketMessages(p=1.0, honest=0.5), 40, 1e-3, {}),
    ("a random number of messages", NOISY, hs.BlanketMessages(p=0.5), 12, 1e-3, {}),
    ("a random number of messages", PAIR, hs.Scrambler(dummies=NUMBERS), 20, 1e-3, {}),
    ("a random number of messages", TRUE, hs.BlanketMessages(p=0.5, honest=0.9), 300, 1e-4, {}),
    ("sums of single ones", NOISY, hs.SecureAggregation(), 30, 1e-3, {}),
    ("sums of one-hot reports", BITS, hs.SecureAggregation(), 8, 1e-3, {}),
    ("sums of one-hot reports", BITS, hs.SecureAggregation(coins=4), 10, 1e-3, {}),
    ("a noisy order", NOISY, hs.MallowsShuffle(reference=range(20), theta=0.2), 20, 1e-3, {}),
    ("a cap", hs.RandomizedResponse(k=4, epsilon=1.0), hs.Scrambler(dummies=30, cap=50), 50, 1e-3, {}),
    ("rounds", PAIR, UNIFORM, 30, 1e-3, {"rounds": 2}),
    ("rounds", NOISY, UNIFORM, 10, 1e-3, {"rounds": 3}),
    ("rounds", MATRIX, hs.NoShuffle(), 9, 1e-3, {"rounds": 4}),
    ("reports of one person", NOISY, UNIFORM, 20, 1e-3, {"reports_per_person": 2}),
)  # fmt: skip

SURVEY = """
    population = { n = 60, k = 3 }
    randomizer = { kind = "randomized-response", epsilon = 1.0 }
    shuffler = { kind = "uniform" }
    targets = { epsilon = 1.0, delta = 1e-3 }
    run = { repetitions = 0 }
"""


def _claimed(name: int) -> Document:
    _, randomizer, shuffler, n, delta, repeated = CLAIMS[name]
    protocol = hs.Protocol(randomizer=randomizer, shuffler=shuffler, n=n)
    return dict(json.loads(hs.dp.certificate(protocol, delta=delta, **repeated).to_json()))


def _mixed() -> Document:
    groups = hs.MixedProtocol(groups=[(9, NOISY), (9, CLEAR)], shuffler=UNIFORM)
    return dict(json.loads(hs.dp.certificate(groups, delta=1e-2).to_json()))


def _columns() -> Document:
    rounds = [(hs.Protocol(randomizer=each, shuffler=UNIFORM, n=25), 1) for each in (PAIR, NOISY)]
    return dict(json.loads(of_rounds(rounds, hs.dp.compose(rounds, delta=1e-3), delta=1e-3).to_json()))


def _result() -> Document:
    whole = json.loads(report.to_json(assess(parse(SURVEY))))
    shown = {key: whole[key] for key in ("findings", "population", "specification", "statement", "verdict")}
    return shown | {"findings": [each for each in shown["findings"] if each["question"] in {"central-dp", "local-dp"}]}


def _at(document: Document, *keys: str | int) -> Any:
    place: Any = document
    for key in keys:
        place = place[key]
    return place


def _put(*keys: str | int, value: object) -> Callable[[Document], object]:
    return lambda document: _at(document, *keys[:-1]).__setitem__(keys[-1], value)


def _scaled(place: int, factor: float) -> Callable[[Document], object]:
    """Return a change of one bound of epsilon; the other bound gives way."""

    def change(document: Document) -> None:
        ends = document["epsilon"]
        ends[place] *= factor
        ends[1 - place] = 2 * ends[1] if place == 0 else 0.0

    return change


FALSE: Changes = {  # of the first claim of two values, whose epsilon is exact
    "an upper bound too small by one part in a million": (CONTRADICTED, _scaled(1, 1 - 1e-6)),
    "a lower bound too large by one part in a million": (CONTRADICTED, _scaled(0, 1 + 1e-6)),
    "a smaller delta": (CONTRADICTED, lambda given: given.update(delta=given["delta"] / 2)),
    "a larger delta": (CONTRADICTED, lambda given: given.update(delta=given["delta"] * 2)),
    "less noise": (CONTRADICTED, _put("truth", value="9/10")),
    "more noise": (CONTRADICTED, _put("truth", value="3/5")),
    "more people in the first step": (CONTRADICTED, _put("steps", 0, "release", "groups", value=[[31, 0]])),
    "another view": (CONTRADICTED, _put("steps", 0, "release", "view", value="senders")),
    "a law of another page": (CONTRADICTED, _put("steps", 0, "page", value="pool.md, Theorem 1")),
    "a law of another randomizer": (
        CONTRADICTED,
        lambda given: given["steps"][0].update(name="any finite randomizer", page="pool.md, Theorem 1"),
    ),
    "a step repeated": (CONTRADICTED, lambda given: given["steps"].append(given["steps"][0])),
    "an unknown step": (NOT_CHECKED, _put("steps", 0, "name", value="a rule of tomorrow")),
    "another version": (NOT_CHECKED, _put("version", value=9)),
    "fewer other people than there are": (MALFORMED, _put("others", value=[3])),
    "a target with one value": (MALFORMED, _put("target", value=[1, 1])),
    "bounds in the wrong order": (MALFORMED, _put("epsilon", value=[2.0, 1.0])),
    "a negative number of dummies": (MALFORMED, _put("dummies", value=-1)),
    "a delta of 0": (MALFORMED, _put("delta", value=0)),
    "a huge bound": (MALFORMED, _put("epsilon", value=[0.0, 1e300])),
    "a key that is not in the schema": (MALFORMED, _put("comment", value="all is well")),
    "a key in a step that is not in the schema": (MALFORMED, _put("steps", 0, "release", "depth", value=1)),
    "a number instead of a fraction": (MALFORMED, _put("truth", value=0.75)),
    "a fraction above 1": (MALFORMED, _put("truth", value="4/3")),
}  # fmt: skip


def _vectors() -> Iterator[tuple[str, str, str, str]]:
    """Yield the name, the kind, the verdict and the text of each vector."""
    for name, (kind, *_) in enumerate(CLAIMS):
        yield f"{kind} {name}", kind, AGREES, json.dumps(_claimed(name))
    yield "mixed groups", "mixed groups", AGREES, json.dumps(_mixed())
    yield "columns", "columns", AGREES, json.dumps(_columns())
    for what, (verdict, change) in FALSE.items():
        given = _claimed(0)
        change(given)
        yield what, "two values", verdict, json.dumps(given)
    pair = _claimed(4)
    pair |= {"others": [5, 0, 4], "target": [0, 1]}
    yield "a pair of datasets that is not the worst", "randomized response", NOT_SHOWN, json.dumps(pair)
    rows = _claimed(8)
    rows["rows"][1] = [rows["rows"][1][place] for place in (1, 0, 2)]
    yield "an exchanged distribution", "matrix", CONTRADICTED, json.dumps(rows)
    for place, (factor, end) in {4: (0.98, 1), 8: (0.98, 1), 13: (0.99, 1), 20: (0.98, 1), 25: (0.95, 1)}.items():
        given, kind = _claimed(place), CLAIMS[place][0]
        given["epsilon"] = [0.0, given["epsilon"][0] * factor]
        yield f"{kind}: an upper bound that is too small", kind, CONTRADICTED, json.dumps(given)
        given["epsilon"] = [_claimed(place)["epsilon"][end] * (2 - factor), 9.0]
        yield f"{kind}: a lower bound that is too large", kind, CONTRADICTED, json.dumps(given)
    yield (
        "a mixed group left out",
        "mixed groups",
        CONTRADICTED,
        json.dumps(_mixed() | {"steps": _mixed()["steps"][:-1]}),
    )
    text = json.dumps(_claimed(0))
    yield "a key twice", "two values", MALFORMED, text.replace('"n": 30', '"n": 29, "n": 30')
    yield "not a number", "two values", MALFORMED, text.replace('"delta": 0.001', '"delta": NaN')
    yield "a huge number", "two values", MALFORMED, text.replace('"delta": 0.001', '"delta": 1e999999999')
    yield "a text that ends early", "two values", MALFORMED, text[:-9]
    yield "no certificate", "two values", MALFORMED, "{}"
    yield "a result", "result", AGREES, json.dumps(_result())
    for what, change in {
        "a result whose verdict was edited": _put("verdict", "targets", 0, "word", value="fail"),
        "a result whose status was edited": _put("verdict", "met", value=False),
        "a result with another figure than its certificate": _put("findings", 0, "bound", "upper", value=0.01),
    }.items():
        result = _result()
        change(result)
        yield what, "result", CONTRADICTED, json.dumps(result)


def document() -> Document:
    """Return the whole file."""
    keys = ("name", "kind", "verdict", "text")
    return {"schema_version": "1.0.0", "vectors": [dict(zip(keys, each, strict=True)) for each in _vectors()]}


if __name__ == "__main__":
    FILE.write_text(json.dumps(document(), indent=1) + "\n", encoding="ascii")

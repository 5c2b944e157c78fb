"""Releases of the same people together: bounds of the checker against enumeration in rationals, and forged claims."""

from __future__ import annotations

import itertools
import json
import math
import random
from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from typing import Any

import pytest
from flint import arb, ctx

import hushuffle as hs
from hushuffle import report
from hushuffle.assessment.deployment import assess
from hushuffle.errors import UnsupportedProtocolError
from hushuffle.questions.dp.certificate import of_rounds
from hushuffle.specification import parse
from hushuffle.specification.reading import parse_collection
from shuffle_certificate.certificate import Certificate, MalformedError, Plain, Randomizer, read
from shuffle_certificate.checks import AGREES, CONTRADICTED, NOT_CHECKED, _ends_of, check
from shuffle_certificate.composed import Effort, Ends, composed
from shuffle_certificate.document import check_document
from shuffle_certificate.ends import ball
from shuffle_certificate.planned import randomizes

pytestmark = pytest.mark.usefixtures("no_charts")
Law = dict[Any, Fraction]
ROWS = ((Fraction(7, 10), Fraction(1, 5), Fraction(1, 10)), (Fraction(1, 10), Fraction(4, 5), Fraction(1, 10)))


@pytest.fixture(autouse=True)
def _precision() -> None:
    ctx.prec = 256


def effort(delta: float) -> Effort:
    return Effort(ball(Fraction(delta)), math.inf, thorough=True)


def shuffled(laws: list[tuple[Fraction, ...]]) -> Law:
    """Return the distribution of the multiset of independent reports."""
    masses: Law = {(): Fraction(1)}
    for law in laws:
        after: Law = defaultdict(Fraction)
        for (held, mass), (y, p) in itertools.product(masses.items(), enumerate(law)):
            after[tuple(sorted((*held, y)))] += mass * p
        masses = after
    return masses


def together(pairs: list[tuple[Law, Law]], growth: Fraction) -> Fraction:
    """Return the divergence of a product of pairs of distributions."""
    total = Fraction(0)
    for keys in itertools.product(*({*p, *q} for p, q in pairs)):
        first = second = Fraction(1)
        for key, (p, q) in zip(keys, pairs, strict=True):
            first, second = first * p.get(key, Fraction(0)), second * q.get(key, Fraction(0))
        total += max(first - growth * second, Fraction(0))
    return total


def response(k: int, truth: Fraction) -> list[tuple[Fraction, ...]]:
    lie = (1 - truth) / (k - 1)
    return [tuple(truth if x == y else lie for y in range(k)) for x in range(k)]


def plain(rows: list[tuple[Fraction, ...]], truth: Fraction | None, others: tuple[int, ...], reports: int = 1) -> Plain:
    k, counts = len(rows), tuple((x, count) for x, count in enumerate(others) if count)
    randomizer = Randomizer(k, truth, None if truth is not None else tuple(map(list, rows)), None)
    return Plain(
        shuffled=True,
        randomizer=randomizer,
        n=sum(others) + reports,
        dummies=0,
        others=counts,
        target=(0, 1),
        reports=reports,
    )


def datasets(rows: list[tuple[Fraction, ...]], n: int) -> Iterator[tuple[Law, Law]]:
    """Yield all pairs of neighbouring datasets of n people."""
    for values in itertools.combinations_with_replacement(range(len(rows)), n - 1):
        for a, b in itertools.permutations(range(len(rows)), 2):
            yield shuffled([rows[a], *(rows[x] for x in values)]), shuffled([rows[b], *(rows[x] for x in values)])


def ends_of(given: Plain) -> Ends:
    return _ends_of(given)


@pytest.mark.parametrize("growth", [Fraction(1), Fraction(6, 5), Fraction(2), Fraction(7, 2)])
@pytest.mark.parametrize(("k", "truth"), [(2, Fraction(3, 4)), (3, Fraction(3, 5)), (3, None)])
def test_two_rounds_of_few_people_lie_between_the_bounds(k: int, truth: Fraction | None, growth: Fraction) -> None:
    further: tuple[Fraction, ...] = (Fraction(3, 10), Fraction(3, 10), Fraction(2, 5))
    rows = response(k, truth) if truth is not None else [*ROWS, further]
    others = (0, 2) if k == 2 else (1, 0, 1)
    one = ends_of(plain(rows, truth, others))
    both = composed([(one, 2)], "2 rounds")
    held = [rows[x] for x, count in enumerate(others) for _ in range(count)]
    named = shuffled([rows[0], *held]), shuffled([rows[1], *held])
    exact = together([named, named], growth)
    worst = max(together([pair, pair], growth) for pair in datasets(rows, 3))
    level = effort(max(float(worst), 1e-6))
    least, most = both.least(ball(growth), level), both.most(ball(growth), level)
    assert float(least.lower()) <= float(exact) * (1 + 1e-12)
    assert float(least.upper()) >= float(exact) * 0.99 - 1e-9
    assert float(most.upper()) >= float(worst) * (1 - 1e-12)


def test_adaptive_choices_of_datasets_lie_below_the_upper_bound() -> None:
    """docs/theory/composition.md, Remark 7: 0.1733 for fixed datasets, 0.1899 for adaptive ones."""
    truth = Fraction(hs.RandomizedResponse(k=2, epsilon=1.5).law().symmetric.truth)
    one = ends_of(plain(response(2, truth), truth, (3, 0)))
    most = composed([(one, 3)], "3 rounds").most(arb(2.25).exp(), effort(0.2))
    few = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=1.5), shuffler=hs.UniformShuffle(), n=4)
    assert 0.1899 <= float(most.upper()) <= hs.dp.compose_delta([(few, 3)], epsilon=2.25).upper


@pytest.mark.parametrize("seed", range(6))
def test_random_releases_together_lie_between_the_bounds(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - no secret
    parts, exact_pairs = list[tuple[Ends, int]](), list[tuple[Law, Law]]()
    for _ in range(2):
        k, n = chance.randint(2, 3), chance.randint(1, 3)
        truth = Fraction(chance.randint(45, 90), 100) if k == 3 else Fraction(chance.randint(55, 90), 100)
        rows = response(k, truth)
        values = [chance.randrange(k) for _ in range(n - 1)]
        parts.append((ends_of(plain(rows, truth, tuple(values.count(x) for x in range(k)))), 1))
        held = [rows[x] for x in values]
        exact_pairs.append((shuffled([rows[0], *held]), shuffled([rows[1], *held])))
    whole = composed(parts, "2 releases")
    for growth in (Fraction(11, 10), Fraction(3, 2), Fraction(3)):
        exact = together(exact_pairs, growth)
        level = effort(max(float(exact), 1e-6))
        assert float(whole.least(ball(growth), level).lower()) <= float(exact) * (1 + 1e-12)
        assert float(whole.most(ball(growth), level).upper()) >= float(exact) * (1 - 1e-12)


@pytest.mark.parametrize("reports", [2, 3])
def test_reports_of_one_person_lie_between_the_bounds(reports: int) -> None:
    rows, growth = response(3, Fraction(3, 5)), Fraction(2)
    held = [rows[2]] * 2
    exact = together([(shuffled([rows[0]] * reports + held), shuffled([rows[1]] * reports + held))], growth)
    events, lacking = ends_of(plain(rows, Fraction(3, 5), (0, 0, 2), reports)).named[0][0](ball(growth), effort(0.1))
    total = sum((arb.max(event.p - ball(growth) * event.q, arb(0)) for event in events), arb(0))
    assert float(lacking) < 1e-30
    assert 0.9 * float(exact) <= float(total) <= float(exact) * (1 + 1e-12)


@pytest.mark.parametrize("n", [3, 5])
def test_sums_of_bits_of_few_people_are_enumerated(n: int) -> None:
    p, q, growth = Fraction(1, 2), Fraction(1, 5), Fraction(3, 2)
    worst = Fraction(0)
    for a in range(n):
        for b in range(n - a):
            columns = []
            for held, own in ((a, (p, q)), (b, (q, p))):
                crowd = [(1 - p, p)] * held + [(1 - q, q)] * (n - 1 - held)
                mine, theirs = ({sum(key): mass for key, mass in shuffled([*crowd, (1 - x, x)]).items()} for x in own)
                columns.append((mine, theirs))
            worst = max(worst, together(columns, growth))
    bits = Randomizer(3, None, None, None, (p, q))
    given = Plain(shuffled=True, randomizer=bits, n=n, dummies=0, others=((2, n - 1),), target=(0, 1))
    most = ends_of(given).most(ball(growth), effort(0.1))
    assert abs(float(most) / float(worst) - 1) < 1e-12
    tabulated = ends_of(given).parts
    assert float(composed([*tabulated], "columns").most(ball(growth), effort(0.1)).upper()) >= float(worst)


COLUMNS = """
    population = { n = 20 }
    shuffler = { kind = "uniform" }
    targets = { delta = 1e-3 }
    [[columns]]
    name = "first"
    k = 3
    randomizer = { kind = "randomized-response", epsilon = 1.0 }
    [[columns]]
    name = "second"
    k = 2
    randomizer = { kind = "randomized-response", epsilon = 0.7 }
"""


@cache
def of_columns() -> str:
    return report.to_json(assess(parse_collection(COLUMNS)))


def central(result: dict[str, Any]) -> tuple[str, str]:
    row = next(row for row in check_document(read(json.dumps(result))) if row.question == "central-dp")
    return row.verdict, row.reason


def certificate_of(result: dict[str, Any]) -> dict[str, Any]:
    return next(each["certificate"] for each in result["findings"] if each["question"] == "central-dp")


def test_all_columns_together_agree_and_no_altered_result_does() -> None:
    result = json.loads(of_columns())
    assert central(result) == (AGREES, "")
    written = result["specification"]
    for old, new in (("k = 3", "k = 4"), ("epsilon = 1.0", "epsilon = 2.0"), ("epsilon = 0.7", "epsilon = 0.9"),
                     ("delta = 0.001", "delta = 0.0001"), ("n = 20", "n = 19"),
                     ('"uniform"', '"none"'), ('name = "second"', 'name = "second"\n[[columns]]\nname = "third"'),
                     ("", "rounds = 2\n")):  # fmt: skip
        assert old in written, old
        assert central({**result, "specification": written.replace(old, new, 1)})[0] == CONTRADICTED, new


@pytest.mark.slow
def test_no_altered_certificate_of_columns_agrees() -> None:
    given = certificate_of(json.loads(of_columns()))
    assert given["version"] == 3
    (other,) = given["further"]
    low, high = given["epsilon"]
    release = other["steps"][0]["release"]
    changes: list[dict[str, Any]] = [
        {"further": []}, {"further": [other, other]}, {"version": 2}, {"version": 1}, {"further": [{}]},
        {"delta": given["delta"] / 2}, {"delta": given["delta"] * 2}, {"epsilon": [low, low]},
        {"epsilon": [high * 1.01, 2 * high]}, {"epsilon": [0.0, low * 0.99]}, {"truth": "9/10"}, {"n": 21},
        {"further": [{**other, "truth": "9/10"}]}, {"further": [{**other, "n": 61}]},
        {"further": [{**other, "steps": []}]}, {"further": [{**other, "target": [0, 1], "others": [19, 0]}]},
        {"further": [{**other, "steps": [{**other["steps"][0], "release": {**release, "rounds": 2}}]}]},
        {"further": [{**other, "steps": [{**other["steps"][0], "release": {**release, "groups": [[21, 0]]}}]}]},
    ]  # fmt: skip
    unchanged = {"target": other["target"], "others": list(other["others"])}
    for change in changes:
        if change.get("further") and {key: change["further"][0].get(key) for key in unchanged} != unchanged:
            continue  # another pair of datasets may be as bad
        try:
            verdict = check(read(json.dumps({**given, **change})), question="central-dp").verdict
        except MalformedError:
            continue
        assert verdict != AGREES, change


SURVEY = """
    population = { n = 8, k = 3 }
    randomizer = { kind = "randomized-response", epsilon = 1.0 }
    shuffler = { kind = "uniform" }
    targets = { delta = 1e-3 }
    run = { repetitions = 0 }
"""


@pytest.mark.parametrize(("text", "changes"), [
    (f"rounds = 2\n{SURVEY}", [("rounds = 2", "rounds = 3"), ("rounds = 2\n", "")]),
    (f"rounds = 2\nmemoised = true\n{SURVEY}",
     [("memoised = true", "memoised = false"), ("rounds = 2", "rounds = 3"),
      ("memoised = true", "memoised = true\nchanges = 1")]),
    (SURVEY.replace("k = 3", "k = 3, reports_per_person = 2"),
     [("reports_per_person = 2", "reports_per_person = 1"), ("reports_per_person = 2", "reports_per_person = 3")]),
    (SURVEY.replace('"uniform"', '"secure-aggregation"').replace("randomized-response", "unary-encoding"),
     [("coins = 0", "coins = 5"), ('"secure-aggregation"', '"uniform"'), ("epsilon = 1.0", "epsilon = 1.5")]),
])  # fmt: skip
def test_a_result_is_compared_with_the_rounds_and_reports_of_its_specification(
    text: str, changes: list[tuple[str, str]]
) -> None:
    result = json.loads(report.to_json(assess(parse(text))))
    assert central(result) == (AGREES, "")
    for old, new in changes:
        assert old in result["specification"], result["specification"]
        assert central({**result, "specification": result["specification"].replace(old, new)})[0] == CONTRADICTED, new


def test_memoized_reports_have_the_figure_of_one_round() -> None:
    result = json.loads(report.to_json(assess(parse(f"rounds = 5\nmemoised = true\n{SURVEY}"))))
    given = certificate_of(result)
    assert given["steps"][0]["name"] == "memoized reports shuffled once"
    first = given["steps"][0]["release"]
    for change in ({"memory": 2}, {"memory": 0}, {"rounds": 0}, {"memory": 6}, {"messages": {
        "trials": 9, "p": "1", "own": False, "table": []}}):  # fmt: skip
        steps = [{**given["steps"][0], "release": {**first, **change}}, *given["steps"][1:]]
        try:
            assert check(read(json.dumps({**given, "steps": steps})), question="").verdict == CONTRADICTED
        except MalformedError:
            continue
    steps = [{**given["steps"][0], "release": {**first, "memory": 1, "rounds": 5}}, *given["steps"][1:]]
    del steps[0]["release"]["memory"]  # fresh reports in five rounds reveal more
    row = check(read(json.dumps({**given, "steps": steps, "version": 2})), question="")
    assert row.verdict in {CONTRADICTED, NOT_CHECKED}


def test_a_certificate_of_version_3_is_read_only_where_it_is_needed() -> None:
    protocol = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=1.0), shuffler=hs.UniformShuffle(), n=9)
    given = json.loads(hs.dp.certificate(protocol, delta=1e-2, rounds=2).to_json())
    assert given["version"] == 2
    with pytest.raises(MalformedError, match="version must be 3"):
        Certificate.of(read(json.dumps({**given, "version": 3})))


def test_no_certificate_is_written_where_the_lower_bound_cannot_be_replayed() -> None:
    randomizer = hs.RandomizedResponse(k=2, epsilon=2.0)
    several = hs.Scrambler(dummies=hs.DummyLaw.binomial(trials=20, p=0.5))
    uncertain = hs.Protocol(randomizer=randomizer, shuffler=several, n=20)
    own = hs.Protocol(randomizer=randomizer, shuffler=hs.BlanketMessages(p=0.5), n=20)
    for protocol, again in (
        (uncertain, {"rounds": 2}),
        (uncertain, {"reports_per_person": 2}),
        (own, {"reports_per_person": 2}),
    ):
        with pytest.raises(UnsupportedProtocolError, match="among a random number of messages"):
            hs.dp.certificate(protocol, delta=1e-3, **again)
    capped = hs.Protocol(randomizer=randomizer, shuffler=hs.Scrambler(dummies=0, cap=20), n=20)
    with pytest.raises(UnsupportedProtocolError, match="under a cap"):
        hs.dp.certificate(capped, delta=1e-3, rounds=2)


@pytest.mark.slow
def test_a_lower_bound_that_the_tables_nearly_attain_agrees_and_says_so() -> None:
    one, two = hs.RandomizedResponse(k=2, epsilon=1.0), hs.RandomizedResponse(k=3, epsilon=2.0)
    rounds = [(hs.Protocol(randomizer=each, shuffler=hs.UniformShuffle(), n=2000), 1) for each in (one, two)]
    bound = hs.dp.compose(rounds, delta=1e-5)
    given = json.loads(of_rounds(rounds, bound, delta=1e-5).to_json())
    row = check(read(json.dumps(given)), question="central-dp")
    assert row.verdict == AGREES
    assert row.at_lower is not None
    if row.at_lower < 1e-5:
        assert "of delta" in row.reason
    given["epsilon"] = [bound.upper * 1.02, bound.upper * 1.03]
    assert check(read(json.dumps(given)), question="central-dp").verdict == CONTRADICTED
    given["epsilon"] = [bound.lower * 0.9, bound.lower * 0.97]
    assert check(read(json.dumps(given)), question="central-dp").verdict == CONTRADICTED


def _given(protocol: hs.Protocol) -> dict[str, Any]:
    """Return a certificate as the checker reads it."""
    found: dict[str, Any] = json.loads(hs.dp.certificate(protocol, delta=1e-3).to_json(), parse_float=Fraction)
    return found


def _asked(randomizer: Any, shuffler: Any) -> hs.Protocol:
    return hs.Protocol(randomizer=randomizer, shuffler=shuffler, n=60)


def test_another_randomizer_with_the_local_epsilon_of_the_specification_is_contradicted() -> None:
    people, stated = {"k": 2}, {"kind": "randomized-response", "epsilon": 2.0}
    assert randomizes(stated, people, _given(_asked(hs.RandomizedResponse(k=2, epsilon=2.0), hs.UniformShuffle())))
    rows = [[math.e**2 * 1e-2, 1 - math.e**2 * 1e-2], [1e-2, 0.99]]
    forged = _given(_asked(hs.MatrixRandomizer(rows), hs.UniformShuffle()))
    assert not randomizes(stated, people, forged)
    symmetric = hs.UnaryEncoding(k=2, epsilon=2.0, encoding="symmetric")
    bits = _given(_asked(symmetric, hs.SecureAggregation()))
    assert randomizes({"kind": "unary-encoding", "epsilon": 2.0, "encoding": "symmetric"}, people, bits)
    assert not randomizes({"kind": "unary-encoding", "epsilon": 2.0, "encoding": "optimized"}, people, bits)


def test_dummies_of_a_matrix_are_those_of_its_common_part() -> None:
    rows = [[0.1, 0.8, 0.1], [0.1, 0.3, 0.6]]
    given = _given(_asked(hs.MatrixRandomizer(rows), hs.Scrambler(dummies=50)))
    assert randomizes({"kind": "matrix", "matrix": rows}, {"k": 2}, given)
    dummy = [Fraction(0), Fraction(1, 2), Fraction(1, 2)]
    assert not randomizes({"kind": "matrix", "matrix": rows}, {"k": 2}, {**given, "dummy": dummy})

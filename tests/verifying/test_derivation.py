"""The steps of a certificate are replayed: right ones agree, and no altered one makes a false claim agree."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from typing import Any

import pytest
from flint import ctx

import hushuffle as hs
from hushuffle import report
from hushuffle.assessment.deployment import assess
from hushuffle.curves.rules import RULES as ALL_RULES
from hushuffle.curves.search import LAWS as ALL_LAWS
from hushuffle.errors import UnsupportedProtocolError
from hushuffle.questions.dp.certificate import REPLAYED
from hushuffle.specification import parse
from oracles import dp_enumeration
from shuffle_certificate.certificate import Certificate, MalformedError, read
from shuffle_certificate.checks import AGREES, CONTRADICTED, NOT_CHECKED, NOT_SHOWN, Row, _law_of, check
from shuffle_certificate.composed import Effort
from shuffle_certificate.derivation import LAWS, RULES, WrongStepError, replay
from shuffle_certificate.document import check_document
from shuffle_certificate.ends import ball

pytestmark = pytest.mark.usefixtures("no_charts")
Document = dict[str, Any]

INFINITY = math.inf
NOISY, PAIR = hs.RandomizedResponse(k=3, epsilon=1.0), hs.RandomizedResponse(k=2, epsilon=1.0)
CLEAR, CLEAR_PAIR = (hs.RandomizedResponse(k=k, epsilon=2.0) for k in (3, 2))
TRUE = hs.RandomizedResponse(k=5, epsilon=INFINITY)
MATRIX = hs.MatrixRandomizer([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]])
BITS = hs.UnaryEncoding(k=3, epsilon=1.5, encoding="optimized")
COINS = hs.DummyLaw.of({0: 0.25, 3: 0.5, 40: 0.25})


def survey(randomizer: Any, shuffler: Any, n: int) -> hs.Protocol:
    return hs.Protocol(randomizer=randomizer, shuffler=shuffler, n=n)


CLAIMS: dict[str, Any] = {
    "plain": (survey(NOISY, hs.Scrambler(dummies=5), 20), 1e-3),
    "colluding": (survey(NOISY, hs.BlanketMessages(p=1.0, honest=0.5), 40), 1e-3),
    "own": (survey(NOISY, hs.BlanketMessages(p=0.5, honest=0.8, trials=2), 10), 1e-3),
    "own of two values": (survey(PAIR, hs.BlanketMessages(p=0.25), 30), 1e-3),
    "own of a matrix": (survey(MATRIX, hs.BlanketMessages(p=0.5), 4), 1e-2),
    "truthful": (survey(TRUE, hs.BlanketMessages(p=0.5, honest=0.9), 300), 1e-4),
    "truthful pair": (survey(hs.RandomizedResponse(k=2, epsilon=INFINITY), hs.BlanketMessages(p=1.0), 30), 1e-3),
    "random": (survey(NOISY, hs.Scrambler(dummies=COINS), 10), 1e-3),
    "random for two values": (survey(PAIR, hs.Scrambler(dummies=hs.DummyLaw.geometric(mean=9.0)), 50), 1e-3),
    "random for a matrix": (survey(MATRIX, hs.Scrambler(dummies=COINS), 5), 1e-2),
    "sums": (survey(NOISY, hs.SecureAggregation(), 30), 1e-3),
    "cap": (survey(hs.RandomizedResponse(k=4, epsilon=1.0), hs.Scrambler(dummies=30, cap=50), 50), 1e-3),
    "order": (survey(NOISY, hs.MallowsShuffle(reference=range(30), theta=0.2), 30), 1e-3),
    "order of a matrix": (survey(MATRIX, hs.MallowsShuffle(reference=range(9), theta=0.2), 9), 1e-2),
    "rounds": (survey(NOISY, hs.UniformShuffle(), 5), 1e-3, {"rounds": 3}),
    "rounds of two values": (survey(PAIR, hs.Scrambler(dummies=4), 40), 1e-3, {"rounds": 2}),
    "rounds with senders": (survey(MATRIX, hs.NoShuffle(), 9), 1e-3, {"rounds": 4}),
    "reports": (survey(NOISY, hs.UniformShuffle(), 8), 1e-3, {"reports_per_person": 2}),
    "reports in rounds": (survey(PAIR, hs.UniformShuffle(), 30), 1e-3, {"reports_per_person": 3, "rounds": 2}),
    "reports with senders": (survey(NOISY, hs.NoShuffle(), 9), 1e-3, {"reports_per_person": 2}),
    "bits": (survey(BITS, hs.SecureAggregation(), 40), 1e-3),
    "bits of few": (survey(BITS, hs.SecureAggregation(), 8), 1e-3),
    "bits with noise": (survey(BITS, hs.SecureAggregation(coins=6), 30), 1e-3),
    "bits in rounds": (survey(BITS, hs.SecureAggregation(), 30), 1e-3, {"rounds": 2}),
    "reports of bits": (survey(BITS, hs.SecureAggregation(), 60), 1e-3, {"reports_per_person": 2}),
    "groups": (
        hs.MixedProtocol(groups=[(30, NOISY), (20, MATRIX), (5, CLEAR)],
                         shuffler=hs.NoShuffle()),
        1e-3,
    ),
    "mixed groups": (hs.MixedProtocol(groups=[(6, NOISY), (4, CLEAR)], shuffler=hs.Scrambler(dummies=2)), 1e-2),
    "mixed groups with messages": (
        hs.MixedProtocol(groups=[(2, NOISY), (2, CLEAR)], shuffler=hs.BlanketMessages(p=0.5)),
        1e-2,
    ),
}  # fmt: skip


@cache
def text(name: str) -> str:
    protocol, delta, *repeated = CLAIMS[name]
    return hs.dp.certificate(protocol, delta=delta, **(repeated[0] if repeated else {})).to_json()


def claimed(name: str) -> Document:
    return dict(json.loads(text(name)))


def answered(given: Document) -> Row:
    return check(read(json.dumps(given)), question="central-dp")


def names(given: Document) -> list[str]:
    return [step["name"] for step in given["steps"]]


@pytest.mark.parametrize("name", CLAIMS)
def test_the_bracket_of_a_derived_release_agrees(name: str) -> None:
    row = answered(claimed(name))
    assert row.verdict == AGREES, row.reason


def test_each_rule_and_law_of_the_checker_is_used() -> None:
    used = {step for name in CLAIMS for step in names(claimed(name))}
    assert RULES.keys() | LAWS.keys() == REPLAYED
    assert REPLAYED - used == {"flipped bits", "memoized reports shuffled once"}
    pages = {step.name: step.page for step in (*ALL_RULES, *ALL_LAWS)}
    checked = {name: rule.page for name, rule in RULES.items()} | {name: law[0] for name, law in LAWS.items()}
    assert checked == {name: pages[name] for name in checked}


@pytest.mark.parametrize("name", sorted(set(CLAIMS) - {"order", "order of a matrix", "cap"}))
@pytest.mark.parametrize("place", [0, 1])
def test_an_end_of_a_derived_release_that_is_two_per_cent_too_good_is_refuted(name: str, place: int) -> None:
    given = claimed(name)
    low, high = given["epsilon"]
    given["epsilon"] = [high * 1.02, high * 2] if place == 0 else [0.0, low * 0.98]
    row = answered(given)
    assert row.verdict == CONTRADICTED, row


def test_the_ends_of_an_order_and_of_a_cap_are_refuted_on_their_side() -> None:
    for name, low, high in (("order", 0.5, 3.0), ("order", 0.0, 0.38), ("cap", 0.0, 0.15)):
        given = claimed(name)
        given["epsilon"] = [low, high]
        assert answered(given).verdict in {CONTRADICTED, NOT_SHOWN}, name


def altered(step: Document) -> Iterator[tuple[str, Document]]:
    """Yield copies of a step with one field altered."""
    seen = {"k-ary randomized response, seen", "one report seen"}  # both are true of randomized response
    for name in {*RULES, *LAWS, "a rule of tomorrow"} - (seen if step["name"] in seen else set()):
        yield "name", {**step, "name": name}
    yield "page", {**step, "page": "index.md, Lemma 99"}
    release = step["release"]
    (people, place), sent = release["groups"][0], release["messages"]
    changes: list[tuple[str, Any]] = [
        *(("groups", [[n, place], *release["groups"][1:]]) for n in (2 * people, people + 1, max(people - 1, 1))),
        ("groups", [*release["groups"], [people, place]]),
        ("groups", [[people, 1], *release["groups"][1:]]),
        ("targets", [len(release["groups"]) - 1]),
        *(("reports", number) for number in (1, 2, 3)),
        *(("rounds", number) for number in (1, 2, 3, 5)),
        ("memory", 1),
        *(("view", view) for view in ("multiset", "senders", "sums", "noisy order", "capped multiset")),
        *(("honest", h) for h in (None, people, max(people // 2, 1), min(2 * (release["honest"] or 1), people))),
        *(("messages", {"trials": 9, "p": "1", "own": own, "table": []}) for own in (False, True)),
        ("messages", None),
        ("messages", {"trials": 0, "p": "1", "own": False, "table": [[10**6, 2**64]]}),
    ]  # fmt: skip
    if sent is not None:
        changes += [("messages", {**sent, **change}) for change in (
            {"trials": 2 * sent["trials"]}, {"trials": sent["trials"] + 1}, {"p": "1/3"}, {"own": not sent["own"]},
            {"each": not sent.get("each", False)}, {"table": [[number + 1, part] for number, part in sent["table"]]},
        )]  # fmt: skip
    for key, value in changes:
        if release.get(key, 1 if key == "rounds" else None) != value:
            yield f"{key} {value}", {**step, "release": {**release, key: value}}


@pytest.mark.parametrize("name", CLAIMS)
def test_no_step_with_an_altered_field_agrees(name: str) -> None:
    given, tried = claimed(name), 0
    for place, step in enumerate(given["steps"]):
        for what, changed in altered(step):
            if changed == step:
                continue
            steps = [*given["steps"][:place], changed, *given["steps"][place + 1 :]]
            tried += 1
            try:
                row = answered({**given, "steps": steps})
            except MalformedError:
                continue
            if (name, what) == ("reports with senders", "view noisy order"):  # senders reveal more than an order
                assert row.verdict in {NOT_SHOWN, CONTRADICTED}
                continue
            assert row.verdict in {CONTRADICTED, NOT_CHECKED}, (place, what, row)
            assert row.verdict == CONTRADICTED or "'a rule of tomorrow'" in row.reason, (place, what, row)
    assert tried >= 30


@pytest.mark.parametrize("name", CLAIMS)
def test_no_step_can_be_left_out_repeated_moved_or_added(name: str) -> None:
    given = claimed(name)
    steps = given["steps"]
    others = [step for other in CLAIMS for step in claimed(other)["steps"]]
    lists = [[*steps[:place], *steps[place + 1 :]] for place in range(len(steps))]
    lists += [[*steps[:place], steps[place], *steps[place:]] for place in range(len(steps))]
    lists += [steps[::-1], [*steps[1:], steps[0]]] if len(steps) > 1 else []
    lists += [[*steps, other] for other in others] + [[*steps[:-1], other] for other in others if other != steps[-1]]
    for changed in lists:
        if changed == steps:
            continue
        try:
            verdict = answered({**given, "steps": changed}).verdict
        except MalformedError:
            continue
        # without its first step, a certificate is about the next release, which may have the same figure
        assert verdict == CONTRADICTED or changed == steps[1:], [step["name"] for step in changed]


@pytest.mark.parametrize(("name", "key", "value"), [
    ("colluding", "n", 40), ("colluding", "dummies", 40), ("plain", "dummies", 6), ("sums", "release", "senders"),
    ("groups", "truth", "1/2"), ("groups", "randomizers", []), ("own of a matrix", "dummy", None),
    ("random for a matrix", "dummy", None), ("plain", "steps", []), ("plain", "steps", None), ("plain", "version", 3),
])  # fmt: skip
def test_the_plain_release_must_be_that_of_the_last_step(name: str, key: str, value: object) -> None:
    given = claimed(name)
    given[key] = value
    if key == "n":
        given["others"] = [value - 1]  # type: ignore[operator]
    try:
        assert answered(given).verdict in {CONTRADICTED, NOT_SHOWN, NOT_CHECKED}
    except MalformedError:
        assert key in {"randomizers", "dummy", "steps", "version"}


def honest_of(given: Document, people: int, honest: int) -> Document:
    """Return the claim rewritten by hand for another number of honest people, in all steps."""
    forged: Document = json.loads(json.dumps(given))
    first, *following = forged["steps"]
    first["release"] |= {"groups": [[people, 0]], "honest": honest}
    first["release"]["messages"]["trials"] = people
    for step in following:
        step["release"]["groups"] = [[honest, 0]]
        step["release"]["messages"]["trials"] = honest
    return forged | {"n": honest, "dummies": honest, "others": [0, 0, honest - 1]}


def test_the_figure_of_more_honest_people_is_refuted_for_fewer() -> None:
    given = claimed("colluding")
    assert answered(honest_of(given, 40, 20)).verdict == AGREES
    assert answered(honest_of(given, 80, 20)).verdict == AGREES
    assert answered(honest_of(given, 40, 10)).verdict == CONTRADICTED
    assert answered(honest_of(given, 40, 30)).verdict == CONTRADICTED


def test_rules_do_not_apply_in_another_order() -> None:
    """Messages of all people, colluding ones too, would be counted as dummies."""
    given = claimed("own")
    first, second, third, law = given["steps"]
    release = {**first["release"], "messages": {**first["release"]["messages"], "own": False}}
    forged = [{**second, "release": first["release"]}, {**first, "release": release}, third, law]
    row = answered({**given, "steps": forged})
    assert row.verdict == CONTRADICTED
    assert "'messages of all people together' is no theorem about its release" in row.reason


def test_bounds_of_an_order_cannot_be_exchanged() -> None:
    given = claimed("order")
    first, above, below = given["steps"]
    assert answered({**given, "steps": [first, below, above]}).verdict == CONTRADICTED
    hidden = {**first, "release": {**first["release"], "view": "multiset"}}
    assert answered({**given, "steps": [hidden, above, below]}).verdict == CONTRADICTED


@pytest.mark.parametrize("own", [False, True])
def test_noisy_reports_do_not_count_as_true_ones(own: bool) -> None:
    given = claimed("plain") | {"epsilon": [0.0, "infinity"], "dummies": 5}
    (step,) = given["steps"]
    step |= {"name": "true values among uniform messages", "page": "histograms.md, Theorem 2"}
    step["release"]["messages"] = {"trials": 5, "p": "1", "own": own, "table": []}
    assert "is no law of its release" in answered(given).reason


def test_unequal_trials_of_people_are_refuted() -> None:
    given = claimed("colluding")
    given["steps"][0]["release"]["messages"]["trials"] = 41
    assert "equal numbers of trials" in answered(given).reason


def test_a_cap_needs_randomized_response() -> None:
    given = claimed("cap")
    given |= {"values": 3, "truth": None, "rows": MATRIX.channel().matrix.tolist(), "dummy": [1 / 3] * 3}
    given["steps"][1]["name"], given["steps"][1]["page"] = "any finite randomizer", "pool.md, Theorem 1"
    assert "a cap needs randomized response" in answered(given).reason


@pytest.mark.parametrize("table", [
    [[3, 2**63], [1, 2**63]], [[1, 2**63]], [[1, 2**64], [2, 0], [3, 1]], [[1, 2**63], [1, 2**63]], [[1]], [1], "1",
    [[10**10, 2**64]], [[-1, 2**64]], [[1, 2.5]],
])  # fmt: skip
def test_a_malformed_table_of_dummies_is_one_clear_error(table: object) -> None:
    given = claimed("random")
    given["steps"][0]["release"]["messages"]["table"] = table
    with pytest.raises(MalformedError, match="The certificate is invalid"):
        answered(given)


def test_an_unknown_rule_is_named() -> None:
    given = claimed("plain")
    given["steps"][0]["name"] = "a rule of tomorrow"
    row = answered(given)
    assert (row.verdict, row.reason) == (NOT_CHECKED, "the checker does not replay 'a rule of tomorrow'")
    for protocol, step in (
        (hs.MixedProtocol(groups=[(9, NOISY), (9, MATRIX)], shuffler=hs.UniformShuffle()), "shuffled groups"),
        (hs.MixedProtocol(groups=[(9, PAIR), (9, CLEAR_PAIR)], shuffler=hs.UniformShuffle()), "shuffled groups"),
        (survey(hs.LocalHashing(k=9, g=4, epsilon=INFINITY), hs.BlanketMessages(p=0.5), 900), "true hash buckets"),
    ):
        with pytest.raises(UnsupportedProtocolError, match=step):
            hs.dp.certificate(protocol, delta=1e-2)


def test_a_certificate_of_version_1_is_about_its_plain_release() -> None:
    given = claimed("plain") | {"version": 1}
    del given["steps"], given["randomizers"]
    assert answered(given).verdict == AGREES
    given["dummies"] += 1
    assert answered(given).verdict in {CONTRADICTED, NOT_SHOWN}


@pytest.mark.parametrize("growth", [Fraction(11, 10), Fraction(3, 2)])
def test_the_mean_over_dummies_contains_the_enumerated_one(growth: Fraction) -> None:
    ctx.prec = 256
    protocol = survey(NOISY, hs.Scrambler(dummies=hs.DummyLaw.of({0: 0.25, 1: 0.5, 4: 0.25})), 3)
    certificate = Certificate.of(read(hs.dp.certificate(protocol, delta=1e-2).to_json()))
    truth = Fraction(NOISY.law().symmetric.truth)
    exact = sum(
        weight * dp_enumeration.worst_delta(3, 3, truth, growth, dummies)
        for weight, dummies in ((Fraction(1, 4), 0), (Fraction(1, 2), 1), (Fraction(1, 4), 4))
    )
    ends = replay(certificate, lambda plain: _law_of(plain).ends)
    for delta in (float(exact) / 2, float(exact), 2 * float(exact)):
        effort = Effort(ball(Fraction(delta)), INFINITY, thorough=True)
        assert float(ends.least(ball(growth), effort).lower()) <= float(exact) * (1 + 1e-12)
        assert float(ends.most(ball(growth), effort).upper()) >= float(exact) * (1 - 1e-12)


def test_steps_left_over_are_wrong() -> None:
    given = claimed("plain")
    with pytest.raises(WrongStepError, match="belongs to no rule"):
        replay(
            Certificate.of(read(json.dumps({**given, "steps": given["steps"] * 2}))), lambda plain: _law_of(plain).ends
        )


SPECIFICATION = """
    population = { n = 60, k = 3 }
    randomizer = { kind = "randomized-response", epsilon = 1.0 }
    shuffler = { kind = "blanket-messages", p = 1.0, trials = 2, honest = 0.5 }
    targets = { delta = 1e-3 }
    run = { repetitions = 0 }
"""


def central(result: Document) -> tuple[str, str]:
    row = next(row for row in check_document(read(json.dumps(result))) if row.question == "central-dp")
    return row.verdict, row.reason


def test_a_result_is_compared_with_the_shuffler_of_its_specification() -> None:
    result = json.loads(report.to_json(assess(parse(SPECIFICATION))))
    assert central(result) == (AGREES, "")
    written = result["specification"]
    for old, new in (("honest = 0.5", "honest = 0.4"), ("trials = 2", "trials = 1"), ("blanket-messages", "uniform")):
        assert old in written
        verdict, reason = central({**result, "specification": written.replace(old, new)})
        assert verdict == CONTRADICTED
        assert "the shuffler" in reason
    scrambled = SPECIFICATION.replace(
        '"blanket-messages", p = 1.0, trials = 2, honest = 0.5', '"scrambler", dummies = 7'
    )
    result = json.loads(report.to_json(assess(parse(scrambled))))
    assert central(result) == (AGREES, "")
    assert (
        central({**result, "specification": result["specification"].replace("dummies = 7", "dummies = 6")})[0]
        == CONTRADICTED
    )

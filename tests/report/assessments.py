"""Made-up assessments, as a report meets them; no figure here is computed by an analysis."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from hushuffle.model import (
    Anonymity,
    Assumption,
    Bound,
    Chart,
    Citation,
    Estimate,
    Finding,
    Population,
    Report,
    Scenario,
    Series,
    Statement,
    Target,
    Utility,
    Warned,
    Witness,
)
from hushuffle.model.citation import BLANKET, DARROCH, FAIR, KAIROUZ, PIE, QIF

SPECIFICATION = """\
[population]
data = "statsmodels:fair"
column = "affairs"
categories = { none = "== 0", some = "> 0" }
missing = "refuse"

[randomizer]
kind = "randomized-response"
epsilon = 2.0

[shuffler]
kind = "uniform"

[targets]
delta = 1e-6
standard_error = 0.02

[run]
repetitions = 100
seed = "secure"
"""
OWN = Citation(key="theory", text="The hushuffle theory page")


def findings(k: int) -> tuple[Finding, ...]:
    return (
        Finding(
            question="local-dp",
            adversary="Someone who reads one device's message",
            sentence="What one device sends is at most e^2.000 = 7.389 times as likely under one answer as under "
            "any other.",
            bound=Bound.exact(2.0, unit="nats", sources=(KAIROUZ,)),
            proof="Ratio of the two probabilities of randomized response.",
        ),
        Finding(
            question="central-dp",
            adversary="The analyst, knowing everyone else's answer",
            sentence="After shuffling, changing one person's answer changes the odds of any outcome by a factor of "
            "at most 1.091, except with probability 1e-06.",
            bound=Bound(
                lower=0.08651234,
                upper=0.08660071,
                kind="bracket",
                unit="nats",
                sources=(OWN.at("docs/theory/order.md, Theorem 1"), BLANKET.at("Theorem 3.1"), OWN.at("section 1.4")),
                witness=Witness(family="all others at one value", others=(6365,), target=(0, 1)),
            ),
            proof="Privacy blanket, exact sum over the number of blanket messages.",
        ),
        Finding(
            question="vulnerability",
            adversary="An outsider who knows nobody's answer",
            sentence=f"Guesses one person's answer right 50.2 % of the time; {100 / k:.1f} % before.",
            bound=Bound.exact(0.50213, unit="probability", sources=(QIF.at("Proposition 2"), DARROCH)),
            proof="Exact posterior vulnerability of the histogram.",
        ),
        Finding(
            question="re-identification",
            adversary="A linker who holds everyone's true answers",
            sentence="Picks the right person behind a message in at most 2 of 6,366 cases.",
            bound=Bound(lower=0.0, upper=0.000314, kind="upper", unit="probability", sources=(PIE.at("Theorem 2"),)),
            proof="Fano's inequality with the mutual information of the channel.",
        ),
        Finding(
            question="identification-error",
            adversary="A linker who holds everyone's true answers",
            sentence="Fails to pick the right person in at least 99.9 % of cases.",
            bound=Bound(lower=0.9996, upper=1.0, kind="lower", unit="probability", sources=(PIE.at("Theorem 2"),)),
            proof="Fano's inequality.",
        ),
        Finding(
            question="attack",
            adversary="An attack that was run on the data",
            sentence="The nearest-neighbour attack guessed right in 49.1 % to 51.3 % of cases.",
            bound=Bound(lower=0.491, upper=0.513, kind="estimate", unit="probability", confidence=0.95),
            proof="Clopper-Pearson interval over 1,000 trials.",
        ),
        Finding(
            question="max-load",
            adversary="The analyst, reading the histogram",
            sentence="Learns at most 7.2 bits about the whole population.",
            bound=Bound(lower=0.0, upper=7.2, kind="upper", unit="bits", sources=(QIF.at("Theorem 4"),)),
            proof="Capacity of the histogram channel.",
        ),
    )


def without_noise() -> Finding:
    return Finding(
        question="local-dp",
        adversary="Someone who reads one device's message",
        sentence="Nothing is randomized: each message is the answer itself.",
        bound=Bound.exact(math.inf, unit="nats"),
        proof="The channel is the identity.",
    )


def charts() -> tuple[Chart, ...]:
    people = tuple(float(round(10 ** (2 + step / 10))) for step in range(41))
    budgets = tuple(0.25 * step for step in range(1, 25))
    return (
        Chart(
            key="epsilon-by-n",
            title="Central privacy against the number of people",
            caption="More people hide each other better: epsilon falls like one over the square root of n.",
            x_label="people n",
            y_label="epsilon after shuffling (nats)",
            series=(
                Series(
                    label="certified bracket",
                    x=people,
                    lower=tuple(6.9 / math.sqrt(n) * (1 - 2 / math.sqrt(n)) for n in people),
                    upper=tuple(6.9 / math.sqrt(n) * (1 + 2 / math.sqrt(n)) for n in people),
                ),
                Series(
                    label="without shuffling",
                    x=people,
                    lower=tuple(2.0 for _ in people),
                    upper=tuple(2.0 for _ in people),
                ),
            ),
            x_log=True,
            y_log=True,
            here=6366.0,
        ),
        Chart(
            key="guess-by-epsilon",
            title="How often an answer is guessed",
            caption="A larger local epsilon helps every adversary, most of all one who knows the others' answers.",
            x_label="local epsilon (nats)",
            y_label="probability of a right guess",
            series=tuple(
                Series(
                    label=f"knows {known}",
                    x=budgets,
                    lower=tuple(0.5 + scale * (1 - math.exp(-e)) * 0.98 for e in budgets),
                    upper=tuple(0.5 + scale * (1 - math.exp(-e)) for e in budgets),
                )
                for known, scale in (("nobody", 0.002), ("100 people", 0.011), ("everyone else", 0.021))
            ),
            here=2.0,
        ),
        Chart(
            key="error-by-epsilon",
            title="Accuracy against privacy",
            caption="The standard error that the same people give at another local epsilon.",
            x_label="local epsilon (nats)",
            y_label="standard error of a share",
            series=(
                Series(
                    label="predicted",
                    x=(0.5, 1.0, 2.0, 3.0, 4.0),
                    lower=(0.0248, 0.0121, 0.0053, 0.0028, 0.0016),
                    upper=(0.0248, 0.0121, 0.0053, 0.0028, 0.0016),
                ),
            ),
            y_log=True,
            here=2.0,
        ),
    )


def utility(k: int, counts: tuple[int, ...] | None, *, target: float | None = 0.02, wrong: bool = False) -> Utility:
    n = 6366
    if counts is None:
        return Utility(predicted=np.full(k, 0.00733), target=target)
    rng = np.random.default_rng(k)
    intercept, slope = 2.2e-5, (k - 2) * 1e-6
    shares = np.array(counts) / n
    predicted = np.sqrt(intercept + slope * shares)
    raw = shares + predicted * rng.standard_normal(k)
    z = rng.standard_normal(k) + (9.0 if wrong else 0.0)
    return Utility(
        predicted=predicted,
        target=target,
        repetitions=100,
        measured=predicted * np.sqrt(1 + z * math.sqrt(2 / 100)),
        z=z,
        estimate=Estimate(frequencies=raw, raw=raw, n=n, variance_intercept=intercept, variance_slope=slope),
    )


def labels(k: int) -> tuple[str, ...]:
    named = {
        2: ("none", "some"),
        7: ("never", "once", "twice", "3 times", "4 to 10 times", "monthly", "weekly or more"),
    }
    return named.get(k, tuple(f"occupation {code:03d}" for code in range(k)))


def assessment(
    k: int = 2,
    *,
    data: bool = True,
    names: tuple[str, ...] | None = None,
    warnings: bool = True,
    noise: bool = True,
    target: float | None = 0.02,
    wrong: bool = False,
) -> Report:
    weights = 1.0 / np.arange(1, k + 1) ** 1.2
    counts = tuple(int(count) for count in np.random.default_rng(k).multinomial(6366, weights / weights.sum()))
    return Report(
        title="Affairs survey of 1974",
        question="6,366 people each answer one question with 2 possible answers; every device tells the truth with "
        "probability 76.2 % (k-ary randomized response, epsilon 2.000), and a uniform shuffle hides who sent what.",
        population=Population(
            n=6366,
            labels=names or labels(k),
            source="statsmodels:fair, column affairs" if data else "no data: n given",
            counts=counts if data else None,
            dropped=12 if data else 0,
        ),
        findings=findings(k) if noise else (without_noise(),),
        utility=utility(k, counts if data else None, target=target, wrong=wrong),
        charts=charts(),
        warnings=(
            Warned(
                key="fixed-seed",
                sentence="The randomness of this run came from the fixed seed 7, so whoever knows it can undo the "
                "randomization.",
                advice='Set seed = "secure" before you collect real answers.',
            ),
            Warned(
                key="repeated-questions",
                sentence="The figures hold for one round; asking the same people again adds up.",
                advice="Give rounds = 12 under [run] to see the total for a year of monthly questions.",
            ),
        )
        if warnings
        else (),
        specification=SPECIFICATION,
        software=(("hushuffle", "0.1.0"), ("Python", "3.11.9"), ("numpy", "2.4.6"), ("scipy", "1.17.1")),
        citations=(FAIR,) if data else (),
    )


def with_first_page(made: Report) -> Report:
    """Return it with a verdict in which every word occurs, and a statement."""
    error = Bound(lower=0.004, upper=0.006, kind="bracket", unit="")
    targets = (
        Target(key="epsilon", topic="Central epsilon", rule="at most", asked=0.05, got=made.findings[1].bound),
        Target(key="delta", topic="Delta", rule="below", asked=0.001, got=Bound.exact(1e-6, unit="probability")),
        Target(key="standard_error", topic="Standard error", rule="at most", asked=0.005, got=error),
        Target(key="guessing", topic="Guessing", rule="at most", asked=0.6, got=None, reason="No <law> fits."),
    )
    statement = Statement(
        claim="Seeing the release changes the odds of any conclusion about one person by at most a factor 1.091.",
        unit="The value of one person is replaced by any other value.",
        threats=("Whoever reads the release is not trusted.", "The shuffler, run by <b>Trust</b>, is trusted."),
        assumptions=(
            Assumption(key="one_answer", sentence="Everybody sends one report.", vouched="the works council"),
            Assumption(key="devices", sentence="Devices run the mechanism."),
        ),
        scenarios=(
            Scenario(key="as-planned", case="As planned", central=made.findings[1].bound, standard_error=0.00533),
            Scenario(key="colluders", case="All tell", central=None, standard_error=None, remark="Nobody is left."),
        ),
        respondents=("Your device changes your answer at random.", "The fact that you take part is not hidden."),
        anonymity=(
            Anonymity(key="inference", question="Inference?", sentence="Guesses right.", bound=made.findings[2].bound),
            Anonymity(key="singling-out", question="Singling out?", sentence="Not analysed.", bound=None),
        ),
        unprotected=("What is true of the people as a whole.",),
        facts=(("Author", "Example Ltd."), ("Specification, SHA-256", "ab" * 32)),
    )
    return replace(made, targets=targets, statement=statement)

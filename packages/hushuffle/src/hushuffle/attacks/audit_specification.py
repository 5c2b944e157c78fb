"""Audit the deployment that a specification describes: test all claims and play all games that apply to it.

Four attacks test a sum by several messages: by the sum of the messages, by single messages, by pairs of messages, and,
for few people, by sets of messages that have the size of one client's set.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Unpack, cast

import numpy as np

from hushuffle._checks import Floats, Integers
from hushuffle.attacks.audit_study import Audited, Options, audit_deployment, audit_games, audit_report, played_games
from hushuffle.attacks.games import Game, Named, Terms, enough, fair, filter_games, refuse, round_games, tell_apart
from hushuffle.attacks.measured import measure
from hushuffle.attacks.order_games import order_games
from hushuffle.errors import UnsupportedProtocolError
from hushuffle.mechanisms.split_and_mix import SplitAndMix
from hushuffle.model import Bound, Progress, Report, Unanswered, silent
from hushuffle.questions import dp
from hushuffle.randomness import Randomness, secure
from hushuffle.specification import Specification, build_adversaries, build_protocol
from hushuffle.specification.order_setup import arranged
from hushuffle.specification.sums import SumSpecification

if TYPE_CHECKING:
    from hushuffle.specification.reach import ReachPopulation

_HOUSEHOLD: Final = 2
"""Default size of the household whose reports the adversary tries to identify."""


def audit_specification(
    specification: Specification, *, base_folder: Path = Path(), delta: float | None = None, **options: Unpack[Options]
) -> Report:
    """Audit a survey by its claims and all games."""
    people = specification.population.read(base_folder)
    arrangement = arranged(specification, people, base_folder)
    shuffler, groups = (None, None) if arrangement is None else (arrangement.shuffler, arrangement.groups)
    protocol = build_protocol(specification, n=people.n, k=people.k, shuffler=shuffler)
    honest = protocol.secret
    rounds = round_games(honest, rounds=specification.rounds or 1, memoised=bool(specification.memoised))
    reader = build_adversaries(specification).order
    household = _HOUSEHOLD if reader is None else reader.household
    order = order_games(honest, groups, household=household)
    return audit_deployment(
        protocol,
        delta=specification.targets.delta if delta is None else delta,
        labels=people.population.labels,
        further=[*rounds, *order],
        **options,
    )


def audit_columns(
    columns: Mapping[str, Specification],
    *,
    base_folder: Path = Path(),
    delta: float | None = None,
    trials: int | None = None,
    confidence: float = 0.95,
    rng: Randomness | None = None,
    progress: Progress | None = None,
) -> Report:
    """Audit each column by itself: a true claim of any column is refuted with probability at most 1 - `confidence`.

    Columns are shuffled independently, so the claim of all columns together follows from the claims that are tested.
    """
    options: Options = {"trials": trials, "confidence": 1 - (1 - confidence) / len(columns), "rng": rng}
    studies = {}
    for place, (name, specification) in enumerate(columns.items()):
        options["progress"] = _part(progress or silent, name, place, len(columns))
        studies[name] = audit_specification(specification, base_folder=base_folder, delta=delta, **options)
    first = next(iter(studies.values()))
    heading, sign, _ = first.question.partition("? ")
    about = [f"{name}: {study.question.removeprefix(heading + sign)}" for name, study in studies.items()]
    alike = all(study.answers == first.answers for study in studies.values())
    own = (f"{name}: {answer}" for name, study in studies.items() for answer in study.answers)
    return replace(
        first,
        question=" ".join([f"{heading}?", *about]),
        answers=(
            *(first.answers if alike else own),
            "Columns are audited one by one. The guarantee of all columns together is composed from theirs, and is "
            "not tested by itself.",
        ),
        tables=tuple(
            replace(table, key=f"{table.key}-{place}", title=f"{name}: {table.title}")
            for place, (name, study) in enumerate(studies.items())
            for table in study.tables
        ),
        charts=tuple(
            replace(chart, key=f"{chart.key}-{place}", title=f"{name}: {chart.title}")
            for place, (name, study) in enumerate(studies.items())
            for chart in study.charts
        ),
        unanswered=tuple(
            replace(row, topic=f"{name}: {row.topic}") for name, study in studies.items() for row in study.unanswered
        ),
        settings=(("confidence", f"{confidence:g}"),),
        citations=tuple(dict.fromkeys(source for study in studies.values() for source in study.citations)),
    )


def _part(tell: Progress, name: str, place: int, columns: int) -> Progress:
    return lambda what, share: tell(f"{name}: {what}", (place + share) / columns)


def audit_reach(specification: Specification, *, base_folder: Path = Path(), **options: Unpack[Options]) -> Report:
    """Audit a reach study by the membership-inference game on its filters.

    >>> from hushuffle.randomness import reproducible
    >>> from hushuffle.specification import parse
    >>> study = parse('''
    ...     population = { people = 100, audiences = { tv = 30, web = 20 }, bits = 100 }
    ...     randomizer = { kind = "bit-flipping", p = 0.25 }
    ...     shuffler = { kind = "uniform" }
    ...     targets = { delta = 1e-3 }
    ... ''')
    >>> audit_reach(study, rng=reproducible(1)).tables[0].rows[0][:3]
    ('whether a person is in every audience or in none', 'knows all other members and the hash key', 'not refuted')
    """
    population = cast("ReachPopulation", specification.population)  # the caller knows which kind it is
    p = population.flips(specification.randomizer, specification.targets)
    met = population.meet(base_folder)
    named = filter_games(audiences=met.people, bits=population.bits, p=p, hashes=population.hashes)
    messages = population.bits * len(population.names)
    about = f"{len(population.names)} Bloom filters of {population.bits:,} bits, each flipped with p = {p:g}."
    return audit_games(named, about=about, messages=messages, **options)


Score = Callable[[SplitAndMix, Integers], Floats]
"""Takes mixed messages, shape (releases, messages); a larger score is evidence for the target's highest number."""

_TRIALS: Final = 100_000
_GAMES: Final = 2000
_OF_CLAIMS: Final = 200_000_000
_OF_GAMES: Final = 20_000_000
"""Largest numbers of messages that are simulated for claims and for each game, unless `trials` is given."""

_OF_PAIRS: Final = 40_000_000
"""Largest number of messages in tests of message pairs, unless 200 releases need more."""
_FEWEST: Final = 200
_CELLS: Final = 1 << 22
"""Number of messages drawn at once."""

_SUBSETS: Final = 1 << 18
"""Largest number of table entries for counting subsets of the messages of one release."""

_TESTS: Final = 6
_HAIR: Final = 1e-9


def audit_sum(
    specification: SumSpecification,
    *,
    base_folder: Path = Path(),
    delta: float | None = None,
    trials: int | None = None,
    confidence: float = 0.95,
    rng: Randomness | None = None,
    progress: Progress | None = None,
) -> Report:
    """Audit a sum: all others have the lowest number, the target the lowest or the highest.

    Default `trials`: 100,000 releases for each claim, 2,000 for each game, or fewer if releases are large.

    Source: docs/how-to/audit.md.

    >>> from hushuffle.randomness import reproducible
    >>> from hushuffle.specification.sums import parse_sum
    >>> report = audit_sum(parse_sum('''
    ...     population = { n = 20, kind = "number", low = 0, high = 10, levels = 11 }
    ...     sum = { epsilon = 1.0, delta = 1e-3 }
    ... '''), trials=20_000, rng=reproducible(1))
    >>> report.tables[0].rows[0][:3]
    ('Central epsilon at delta = 0.001, from the sum', 'not refuted', '0.9515 nats')
    """
    tell, source = progress or silent, secure() if rng is None else rng
    protocol = specification.build(specification.asked.read(base_folder, rng=secure()).n)
    target = protocol.delta if delta is None else delta
    each = 1 - (1 - confidence) / _TESTS
    rows: list[Audited] = []
    refused = [
        Unanswered(question="audit", topic="Local epsilon", reason="No privacy is claimed without the shuffler.")
    ]
    tell("releases", 0.0)
    try:
        rows += _claims(protocol, target, trials, each, source)
    except UnsupportedProtocolError as error:
        refused.append(Unanswered(question="audit", topic="Central epsilon", reason=str(error)))
    size = protocol.messages * protocol.needed
    terms = Terms(releases=trials or min(_GAMES, _OF_GAMES // size), confidence=each, rng=source)
    games: list[Named] = [
        ("Guess a number, knowing all other numbers", lambda terms: _guess(protocol, terms)),
        ("What messages reveal beyond their sum", lambda terms: _beyond(protocol, terms)),
    ]
    played, unplayed = played_games(games, terms, lambda what, share: tell(what, 0.7 + 0.3 * share))
    tell("done", 1.0)
    return audit_report(protocol.describe(), rows, [*refused, *unplayed], confidence, played=played)


def of_sum(protocol: SplitAndMix, mixed: Integers) -> Floats:
    """Return log likelihood ratios of the noisy sum, up to the floating-point precision of the noise.

    >>> protocol = SplitAndMix(low=0, high=4, n=20, epsilon=2.0, delta=1e-3)
    >>> of_sum(protocol, np.array([[3, 1], [0, 0], [2, 0]])).round(6).tolist()
    [2.0, -2.0, 0.0]
    """
    margin, modulus, top = protocol.margin, protocol.modulus, protocol.top
    sums = (mixed.sum(axis=1) + margin) % modulus - margin
    ratios: Floats = (np.abs(sums) - np.abs(sums - top)) * (-math.log(protocol.noise.chance))
    return ratios


def of_messages(protocol: SplitAndMix, mixed: Integers) -> Floats:
    """Return how many messages equal the code of the highest number, which only the target may hold.

    >>> protocol = SplitAndMix(low=0, high=4, n=20, epsilon=2.0, delta=1e-3)
    >>> of_messages(protocol, np.array([[4, 1, 4], [0, 7, 7]])).tolist()
    [2.0, 0.0]
    """
    counts: Floats = np.count_nonzero(mixed == protocol.top, axis=1).astype(np.float64)
    return counts


def of_pairs(protocol: SplitAndMix, mixed: Integers) -> Floats:
    """Return how many pairs of messages add up to the code of the highest number.

    >>> protocol = SplitAndMix(low=0, high=4, n=20, epsilon=2.0, delta=1e-3)
    >>> q = protocol.modulus
    >>> of_pairs(protocol, np.array([[q - 1, 5, 7, 9], [q - 1, 1, 1, 9], [2, 2, 2, 9]])).tolist()
    [1.0, 0.0, 3.0]
    """
    modulus, top, pairs = protocol.modulus, protocol.top, np.empty(len(mixed))
    together = max(1, (1 << 62) // modulus)  # releases whose keys fit into 63 bits
    for start in range(0, len(mixed), together):
        messages = np.sort(mixed[start : start + together], axis=1)
        release = np.arange(len(messages))[:, None] * modulus
        keys = (messages + release).ravel()
        wanted = (top - messages[:, ::-1]) % modulus + release  # in order, but for one step: found in no time
        partners = np.searchsorted(keys, wanted, side="right") - np.searchsorted(keys, wanted, side="left")
        itself = (2 * messages - top) % modulus == 0
        pairs[start : start + together] = (partners - itself).sum(axis=1) / 2
    return pairs


def subset_sums(messages: Integers, size: int, modulus: int) -> Floats:
    """Return how many sets of `size` messages have each sum modulo `modulus`, shape (modulus,).

    >>> subset_sums(np.array([1, 2, 3]), 2, 4).tolist()
    [1.0, 1.0, 0.0, 1.0]
    """
    sets = np.zeros((size + 1, modulus))
    sets[0, 0] = 1.0
    for message in messages.tolist():
        sets[1:] += np.roll(sets[:-1], message, axis=1)
    counts: Floats = sets[size]
    return counts


def _claims(
    protocol: SplitAndMix, delta: float, trials: int | None, confidence: float, rng: Randomness
) -> list[Audited]:
    claimed, size = dp.epsilon(protocol, delta=delta), protocol.messages * protocol.needed
    if math.isinf(claimed.upper):
        refuse(f"The release was not audited: no central epsilon is claimed at delta = {delta:g}.")
    releases = trials or min(_TRIALS, _OF_CLAIMS // size)
    enough(releases, size)
    half = dp.delta(protocol, epsilon=claimed.lower / 2).lower
    # What is scored, the score, delta, and whether scores are likelihood ratios. At half of epsilon the event is chosen
    # by what was counted, whatever the noise is.
    tests: tuple[tuple[str, Score, float, bool], ...] = (
        ("from the sum", of_sum, delta, True),
        ("from the sum", of_sum, half, False),
        ("from single messages", of_messages, delta, False),
        ("from pairs of messages", of_pairs, delta, False),
    )
    looks = [score for _, score, _, _ in tests]
    scores = [_scores(protocol, looks, code, releases // 2, rng) for code in (protocol.top, 0)]
    names = (f"{protocol.high:g}", f"{protocol.low:g}")
    rows = []
    for (what, score, at, ratios), high, low in zip(tests, *scores, strict=True):
        bound = dp.epsilon(protocol, delta=at)
        measurement = measure(
            (high, low), claimed=bound.upper, delta=at, confidence=confidence, names=names, ratios=ratios
        )
        exact = Bound(lower=bound.lower, upper=math.inf, kind="lower", unit="nats", sources=bound.sources)
        of = f"Central epsilon at delta = {at:.3g}, {what}"
        rows.append(Audited(what=of, claimed=bound, exact=exact if score is of_sum else None, found=measurement))
    return rows


def _scores(protocol: SplitAndMix, looks: list[Score], code: int, releases: int, rng: Randomness) -> list[Floats]:
    """Return the scores of releases in which one person has `code` and all others 0, an array for each test."""
    size = protocol.messages * protocol.needed
    together, fewer = max(1, _CELLS // size), max(_OF_PAIRS // size, _FEWEST) // 2
    columns: list[list[Floats]] = [[] for _ in looks]
    for start in range(0, releases, together):
        mixed = _mixed(protocol, code, min(together, releases - start), rng)
        for look, scores in zip(looks, columns, strict=True):
            if look is not of_pairs or start < fewer:
                scores.append(look(protocol, mixed))
    return [np.concatenate(scores) for scores in columns]


def _mixed(protocol: SplitAndMix, code: int, releases: int, rng: Randomness) -> Integers:
    """Return the messages of some releases, shape (releases, messages), not shuffled, since tests ignore the order."""
    codes = np.zeros((releases, protocol.needed), dtype=np.int64)
    codes[:, 0] = code
    sent = protocol.shares(codes.ravel(), rng=rng)
    return sent.reshape(len(sent), releases, -1).transpose(1, 0, 2).reshape(releases, -1)


def _guess(protocol: SplitAndMix, terms: Terms) -> Game:
    """Play the sum game: guess from the sum whether one person's number is the lowest or the highest."""
    enough(terms.releases, protocol.messages * protocol.needed)
    bound = dp.delta(protocol, epsilon=0.0)

    def run(world: int) -> float:
        return float(of_sum(protocol, _mixed(protocol, world * protocol.top, 1, terms.rng))[0])

    return Game(
        "whether a person's number is the lowest or the highest",
        "knows all other numbers",
        success=tell_apart(run, terms),
        certified=fair(bound.upper, bound),
    )


def _beyond(protocol: SplitAndMix, terms: Terms) -> Game:
    """Play the split game without noise: two people hold 0 and 2, or 1 and 1, so that only the split can differ."""
    people, each, modulus = protocol.needed, protocol.messages, protocol.modulus
    cells, least = people * each * each * modulus, 2 * protocol.slack
    enough(terms.releases, each * people)
    if cells > _SUBSETS:
        sets = math.lgamma(people * each + 1) - math.lgamma(each + 1) - math.lgamma((people - 1) * each + 1)
        refuse(
            f"The game on equal sums was not played: 10^{sets / math.log(10):.0f} sets of {each} messages modulo "
            f"{modulus:,} are too many. Certified: no adversary succeeds more often than 1/2 + {protocol.slack:.2g}."
        )
    numbers = np.zeros((2, people), dtype=np.int64)
    numbers[0, 0], numbers[1, :2] = 2, 1

    def run(world: int) -> float:
        sent = protocol.split(numbers[world], rng=terms.rng).ravel()
        counts = subset_sums(sent, each, modulus)
        return math.log((counts[1] + _HAIR) / (counts[0] + counts[2] + _HAIR))  # of two people the likelihood ratio

    certified = Bound(lower=0.0, upper=min(least, 1.0), kind="upper", unit="probability")
    return Game(
        "whether two people, whose numbers add up to 2, have 0 and 2 or 1 each",
        "knows all other numbers and all noise",
        success=tell_apart(run, terms),
        certified=fair(min(least, 1.0), certified),
    )

"""Descriptions of releases with several features at once: as the public objects, and as the slow twin reads them.

`draw(seed)` gives one, `asked` all public figures of it beside the truth. Sizes are tiny: all datasets are enumerated.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final

import hushuffle as hs
from hushuffle.model import Bound
from oracles import releases as twin

ROUNDING: Final = Fraction(1, 10**9)
"""Relative: what floats may be off by."""

TRACE: Final = Fraction(1, 10**14)
"""Absolute, of a probability."""

_FAR: Final = 700.0
_WORK: Final = 60_000
"""Steps of the twin for one figure of several rounds."""


# --- devices ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Device:
    """A mechanism, and what its definition says: rows of the channel, the law of a dummy, bits that can be added up."""

    mechanism: Any
    kind: str
    rows: tuple[tuple[Fraction, ...], ...]
    dummy: tuple[Fraction, ...] | None
    vectors: tuple[int, ...] | None = None
    cheap: bool = False

    def laws(self, *, summed: bool) -> tuple[twin.Law, ...]:
        return tuple(self._law(row, summed=summed) for row in self.rows)

    def dummy_law(self) -> twin.Law:
        return self._law(self.dummy or self.rows[0], summed=False)

    def _law(self, row: tuple[Fraction, ...], *, summed: bool) -> twin.Law:
        if summed and self.vectors is not None:
            return twin.law(dict(zip(self.vectors, row, strict=True)))
        return twin.law({twin.report(y): chance for y, chance in enumerate(row)})

    @property
    def truthful(self) -> bool:
        return all(row[x] == 1 for x, row in enumerate(self.rows)) and self.kind == "randomized response"


def _uniform(outputs: int) -> tuple[Fraction, ...]:
    return (Fraction(1, outputs),) * outputs


def response(k: int, growth: Fraction | None) -> Device:
    truth = Fraction(1) if growth is None else growth / (growth + k - 1)
    rows = tuple(tuple(truth if x == y else (1 - truth) / (k - 1) for y in range(k)) for x in range(k))
    epsilon = math.inf if growth is None else math.log(growth)
    mechanism = hs.RandomizedResponse(k=k, epsilon=epsilon)
    return Device(mechanism, "randomized response", rows, _uniform(k), cheap=True)


def matrix(rows: list[list[Fraction]]) -> Device:
    shared = [min(column) for column in zip(*rows, strict=True)]
    dummy = tuple(chance / sum(shared) for chance in shared) if sum(shared) else None
    return Device(hs.MatrixRandomizer(rows), "matrix", tuple(map(tuple, rows)), dummy)


def flips(width: int, p: Fraction) -> Device:
    size = 1 << width
    far = [[(x ^ y).bit_count() for y in range(size)] for x in range(size)]
    rows = tuple(tuple(p**d * (1 - p) ** (width - d) for d in row) for row in far)
    return Device(hs.BitFlipping(width=width, p=float(p)), "bits", rows, _uniform(size), cheap=width == 1)


def unary(k: int, root: Fraction | None, kind: str) -> Device:
    """`root` is e**(epsilon/2)."""
    if kind == "symmetric":
        q = Fraction(0) if root is None else 1 / (root + 1)
        p = 1 - q
    else:
        q, p = Fraction(0) if root is None else 1 / (root**2 + 1), Fraction(1, 2)
    reports = [tuple(number >> x & 1 for x in range(k)) for number in range(1 << k)]

    def chance(vector: tuple[int, ...], own: int | None) -> Fraction:
        ones = [p if x == own else q for x in range(k)]
        return math.prod((one if bit else 1 - one for bit, one in zip(vector, ones, strict=True)), start=Fraction(1))

    rows = tuple(tuple(chance(vector, x) for vector in reports) for x in range(k))
    dummy = tuple(chance(vector, None) for vector in reports)
    epsilon = math.inf if root is None else 2 * math.log(root)
    made: Any = hs.UnaryEncoding(k=k, epsilon=epsilon, encoding=kind)  # type: ignore[arg-type]
    return Device(made, "one-hot", rows, dummy, vectors=tuple(twin.bits(vector) for vector in reports))


def subset(k: int, w: int, growth: Fraction) -> Device:
    sets = list(itertools.combinations(range(k), w))
    weights = [[growth if x in each else Fraction(1) for each in sets] for x in range(k)]
    rows = tuple(tuple(weight / sum(row) for weight in row) for row in weights)
    mechanism = hs.SubsetSelection(k=k, w=w, epsilon=math.log(growth))
    return Device(mechanism, "sets", rows, _uniform(len(sets)))


def hadamard(k: int, growth: Fraction) -> Device:
    signs = [[1]]
    while len(signs) <= k:
        signs = [row + row for row in signs] + [row + [-entry for entry in row] for row in signs]
    weights = [[growth if sign > 0 else Fraction(1) for sign in row] for row in signs[1 : k + 1]]
    rows = tuple(tuple(weight / sum(row) for weight in row) for row in weights)
    return Device(hs.HadamardResponse(k=k, epsilon=math.log(growth)), "hadamard", rows, _uniform(len(signs)))


def of_channel(mechanism: Any, kind: str, *, uniform: bool = False) -> Device:
    """A mechanism that is described by its own matrix, which its samplers are tested against elsewhere."""
    rows = []
    for row in mechanism.channel().matrix.tolist():
        whole = [Fraction(chance) for chance in row]
        rows.append([chance / sum(whole) for chance in whole])
    made = matrix(rows)
    dummy = _uniform(len(rows[0])) if uniform else made.dummy
    return Device(mechanism, kind, made.rows, dummy)


GROWTHS: Final = (Fraction(3, 2), Fraction(2), Fraction(3), Fraction(4), Fraction(9))


def device(rng: random.Random, kind: str, k: int) -> Device:  # noqa: PLR0911
    growth = rng.choice(GROWTHS)
    if kind == "truth":
        return response(k, None)
    if kind == "randomized response":
        return response(k, growth)
    if kind == "bits":
        return flips(1 if k == 2 else 2, Fraction(rng.randint(1, 7), 16))
    if kind == "one-hot":
        root = rng.choice([None, Fraction(3, 2), Fraction(2), Fraction(3)])
        return unary(k, root, rng.choice(["symmetric", "optimized"]))
    if kind == "sets":
        return subset(k, rng.randint(1, k - 1), growth)
    if kind == "hadamard":
        return hadamard(2, growth)
    if kind == "hashing":
        epsilon = rng.choice([0.5, 1.0, 2.0, math.inf])
        return of_channel(hs.LocalHashing(k=2, g=2, epsilon=epsilon), "hashing", uniform=True)
    if kind == "numbers":
        epsilon, made = rng.choice([0.5, 1.0, 2.0]), rng.randrange(4)
        if made == 0:
            return of_channel(hs.DiscreteLaplace(levels=k, epsilon=epsilon), "numbers")
        if made == 1:
            return of_channel(hs.RoundedGaussian(levels=k, epsilon=epsilon), "numbers")
        if made == 2:
            return of_channel(hs.SquareWave(bins=k, epsilon=epsilon), "numbers")
        return of_channel(hs.RoundedResponse(levels=k, epsilon=epsilon, low=0.0, high=1.0), "numbers")
    if kind == "targets":
        return of_channel(hs.TargetSampling(targets=k, sigma=rng.choice([0.125, 0.25, 0.5])), "targets")
    assert kind == "matrix"
    outputs = rng.choice([2, 3]) if k == 2 else k
    return matrix([_row(rng, outputs, zeros=rng.random() < 0.3) for _ in range(k)])


def _row(rng: random.Random, outputs: int, *, zeros: bool) -> list[Fraction]:
    while True:
        cuts = sorted(rng.randint(0, 16) for _ in range(outputs - 1))
        row = [end - start for start, end in itertools.pairwise([0, *cuts, 16])]
        if zeros or min(row) > 0:
            return [Fraction(part, 16) for part in row]


# --- shufflers ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Shuffled:
    """A shuffler, and what it is in the twin's words."""

    shuffler: Any
    features: frozenset[str]
    sources: tuple[twin.Source, ...] = ()
    own: tuple[twin.Source, ...] = ()
    keep: Fraction = Fraction(1)
    view: Any = field(default_factory=twin.Multiset)
    helpers: int = 0
    summed: bool = False


def binomial(trials: int, p: Fraction) -> twin.Law:
    return twin.law({i: math.comb(trials, i) * p**i * (1 - p) ** (trials - i) for i in range(trials + 1)})


def shuffled(rng: random.Random, kind: str, dev: Device, n: int, reports: int) -> Shuffled:  # noqa: PLR0911
    k, outputs = len(dev.rows), len(dev.rows[0])
    symbols = tuple(twin.report(y) for y in range(k))
    p = Fraction(rng.randint(1, 7), 8)
    made: Any
    view: Any
    distance: Any
    if kind == "uniform":
        return Shuffled(hs.UniformShuffle(), frozenset())
    if kind == "no shuffle":
        return Shuffled(hs.NoShuffle(), frozenset({"senders"}), view=twin.Senders())
    if kind == "dummies":
        number = rng.randint(1, 3)
        source = twin.Source(twin.law({number: 1}), dev.dummy_law())
        return Shuffled(hs.Scrambler(dummies=number), frozenset({"dummies"}), (source,))
    if kind == "random dummies":
        law, count = _random_number(rng)
        return Shuffled(
            hs.Scrambler(dummies=law), frozenset({"random dummies"}), (twin.Source(count, dev.dummy_law()),)
        )
    if kind == "cap":
        number = rng.randint(0, min(3, (k - 1) * n))
        view = twin.Capped(n, number, outputs)
        return Shuffled(hs.Scrambler(dummies=number, cap=n), frozenset({"cap"}), view=view)
    if kind == "sums":
        coins, servers = rng.choice([0, 1, 2, 3, 4, 6]), rng.randint(1, 2)
        if dev.vectors is None and rng.random() < 0.9:  # coins go with one-hot encodings alone
            coins = 0
        honest = rng.randint(0, servers)
        made = hs.SecureAggregation(coins=coins, servers=servers, honest=honest)
        source = twin.Source(binomial(coins * honest, Fraction(1, 2)), each=symbols)
        features = (
            {"sums"}
            | ({"coins of servers"} if coins else set())
            | ({"dishonest servers"} if coins and honest < servers else set())
        )
        return Shuffled(made, frozenset(features), (source,) if coins * honest else (), summed=True)
    if kind in ("blanket messages", "fakes"):
        share = rng.choice([1.0, 1.0, 0.75, 0.5, 0.25, 0.0])
        people = max(1, math.floor(Fraction(str(share)) * n)) if share < 1 else n
        features = {kind} | ({"honest share"} if share < 1 else set())
        helpers = n - max(people, reports)
        if kind == "fakes":
            own = twin.Source(binomial(1, p), each=symbols)
            return Shuffled(
                hs.FakesPerValue(p=float(p), honest=share), frozenset(features), own=(own,), helpers=helpers
            )
        trials = rng.choice([1, 1, 2])
        p = rng.choice([p, Fraction(1)])
        own = twin.Source(binomial(trials, p), dev.dummy_law())
        made = hs.BlanketMessages(p=float(p), trials=trials, honest=share)
        return Shuffled(made, frozenset(features), own=(own,), helpers=helpers)
    if kind == "dummies of each value":
        keep = rng.choice([Fraction(1), Fraction(3, 4), Fraction(1, 2)])
        features = {kind} | ({"thinning"} if keep < 1 else set())
        if rng.random() < 0.5:
            law, count = _random_number(rng)
            made = hs.AugmentedShuffle(each=law, kept=float(keep))
            return Shuffled(made, frozenset(features), (twin.Source(count, each=symbols),), keep=keep)
        # Beyond n a count tells nothing more: each further dummy is `ratio` times as likely, whatever people hold.
        ratio = Fraction(rng.randint(1, 5), 8)
        count = twin.law({**{i: (1 - ratio) * ratio**i for i in range(n)}, n: ratio**n})
        made = hs.AugmentedShuffle(each=hs.GeometricDummies(ratio=float(ratio)), kept=float(keep))
        source, view = twin.Source(count, each=symbols), twin.Multiset(most=n)
        return Shuffled(made, frozenset(features | {"endless dummies"}), (source,), keep=keep, view=view)
    assert kind == "order"
    reference = tuple(rng.sample(range(n), n))
    ratio, distance = (
        rng.choice([Fraction(1, 4), Fraction(1, 2), Fraction(7, 8), Fraction(1)]),
        rng.choice(["kendall", "hamming"]),
    )
    made = hs.MallowsShuffle(reference=reference, theta=-math.log(ratio), distance=distance)
    return Shuffled(made, frozenset({"order"}), view=twin.Order(reference, ratio, distance))


def _random_number(rng: random.Random) -> tuple[Any, twin.Law]:
    kind = rng.randrange(4)
    if kind == 0:
        trials, p = rng.randint(1, 3), Fraction(rng.randint(1, 7), 8)
        return hs.DummyLaw.binomial(trials=trials, p=float(p)), binomial(trials, p)
    if kind == 1:
        weights = [Fraction(1, 3), Fraction(1), Fraction(1, 3)]
        law = twin.law({i: weight / sum(weights) for i, weight in enumerate(weights)})
        return hs.DummyLaw.discrete_laplace(center=1, scale=1 / math.log(3)), law
    numbers = rng.sample(range(4), 2)
    share = Fraction(rng.randint(1, 15), 16)
    chances = {numbers[0]: share, numbers[1]: 1 - share}
    return hs.DummyLaw.of(chances), twin.law(chances)


# --- descriptions -------------------------------------------------------------------------------------------------

DEVICES: Final = (
    "truth",
    "randomized response",
    "bits",
    "one-hot",
    "sets",
    "hadamard",
    "hashing",
    "numbers",
    "targets",
    "matrix",
)
SHUFFLERS: Final = (
    "uniform",
    "no shuffle",
    "dummies",
    "random dummies",
    "cap",
    "sums",
    "blanket messages",
    "fakes",
    "dummies of each value",
    "order",
)
TIMES: Final = ("once", "rounds", "other rounds", "memoized", "memoized twice", "changes")


@dataclass
class Drawn:
    """One description: `protocol` is the first round, `others` are those that follow."""

    seed: int
    features: frozenset[str]
    protocol: Any
    question: twin.Question
    device: Device
    devices: tuple[Device, ...] = ()
    reports: int = 1
    rounds: tuple[Any, ...] = ()
    instantaneous: Any = None
    cheap: bool = False
    _truth: list[twin.Twin] = field(default_factory=list)

    @property
    def truth(self) -> twin.Twin:
        if not self._truth:
            self._truth.append(twin.Twin(self.question))
        return self._truth[0]


def draw(seed: int) -> Drawn:
    """A description; raises the project's own errors where the product refuses it."""
    rng = random.Random(seed)  # noqa: S311
    shuffler, times = rng.choice(SHUFFLERS), rng.choices(TIMES, (9, 1, 1, 1, 1, 1))[0]
    several = rng.random() < 0.25
    k = rng.choice([2, 2, 3])
    only_truth = shuffler in ("fakes", "dummies of each value") and rng.random() < 0.9
    kinds = ["truth"] if only_truth else [rng.choice(DEVICES) for _ in range(2 if several else 1)]
    if not only_truth and rng.random() < 0.93:  # others take the product a hundred times as long
        kinds = [rng.choice(["randomized response", "truth"])] * len(kinds)
    if shuffler == "sums" and rng.random() < 0.7:
        kinds = ["one-hot"] * len(kinds)
    if several and rng.random() < 0.7:
        kinds = [kinds[0]] * 2
    devices = [device(rng, kind, k) for kind in (kinds * 2)[: 2 if several else 1]]
    outputs = len(devices[0].rows[0])
    n = rng.randint(1, {2: 5, 3: 4, 4: 3}.get(outputs, 2))
    if times != "once" or shuffler == "order":
        n = min(n, 3)
    reports = min(rng.choice([1, 1, 1, 2, 2, 3]), n)
    first = _release(rng, shuffler, devices, n, reports)
    features = {f"{device.kind if not device.truthful else 'truth'}" for device in devices} | first.features | {times}
    features |= {"several reports"} if reports > 1 else set()
    protocol, targets = first.protocol, first.targets
    if several:
        features |= {"groups"}
        if rng.random() < 0.5:
            place = rng.choice([place for place, (people, _) in enumerate(protocol.groups) if people])
            protocol, targets = protocol.member(place), (place if len(first.release.groups) > 1 else 0,)
    drawn = Drawn(
        seed=seed,
        features=frozenset(features),
        protocol=protocol,
        question=twin.Question(
            tuple((twin.Round(first.release, target, reports, first.helpers),) for target in targets)
        ),
        device=devices[0],
        devices=tuple(devices),
        reports=reports,
        cheap=all(device.cheap or (first.summed and device.vectors is not None) for device in devices),
    )
    return _several_times(rng, drawn, times, devices, n)


@dataclass(frozen=True)
class _First:
    release: twin.Release
    protocol: Any
    features: frozenset[str]
    helpers: int
    summed: bool

    @property
    def targets(self) -> tuple[int, ...]:
        return tuple(place for place, group in enumerate(self.release.groups) if group.people)


def _release(rng: random.Random, kind: str, devices: list[Device], n: int, reports: int) -> _First:
    sizes = [n]
    if len(devices) > 1:
        sizes = [rng.randint(0, n), 0]
        sizes[1] = n - sizes[0]
    # Nobody is in an empty group, and no dummy is like its reports.
    there = next(device for size, device in zip(sizes, devices, strict=True) if size)
    made = shuffled(rng, kind, there, n, reports)
    protocol: Any
    if len(devices) > 1:
        groups = [(size, device.mechanism) for size, device in zip(sizes, devices, strict=True)]
        protocol = hs.MixedProtocol(groups=groups, shuffler=made.shuffler)
    else:
        protocol = hs.Protocol(randomizer=devices[0].mechanism, shuffler=made.shuffler, n=n)
    alike = {
        device.rows: sum(size for size, other in zip(sizes, devices, strict=True) if other.rows == device.rows)
        for device in devices
    }
    sizes = list(alike.values())
    people = [
        twin.Group(size, next(device for device in devices if device.rows == rows).laws(summed=made.summed), made.own)
        for rows, size in alike.items()
    ]
    release = twin.Release(tuple(people), made.sources, made.keep, made.view)
    return _First(release, protocol, made.features, made.helpers, made.summed)


def _several_times(rng: random.Random, drawn: Drawn, times: str, devices: list[Device], n: int) -> Drawn:
    question = drawn.question
    if times == "rounds":
        drawn.rounds = (drawn.protocol,) * 2
        drawn.question = twin.Question(tuple(rounds * 2 for rounds in question.targets))
    if times == "other rounds":
        kind = rng.choice(("uniform", "dummies", "random dummies", "blanket messages", "sums", "no shuffle"))
        other = _release(rng, kind, devices[:1], rng.randint(drawn.reports, 3), drawn.reports)
        drawn.features |= {f"then {kind}"}
        drawn.rounds = (drawn.protocol, other.protocol)
        second = twin.Round(other.release, 0, drawn.reports, other.helpers)
        drawn.question = twin.Question(tuple((*rounds, second) for rounds in question.targets))
    if times.startswith("memoized") or times == "changes":
        coin = None
        if times == "memoized twice":
            outputs = len(devices[0].rows[0])
            again = response(outputs, rng.choice(GROWTHS))
            drawn.instantaneous = again.mechanism
            coin = tuple(zip((twin.report(y) for y in range(outputs)), again.laws(summed=False), strict=True))
        changes = 1 if times == "changes" else rng.choice([0, 0, 1])
        drawn.features |= {"changes"} if changes else set()
        memory = twin.Memory(rng.choice([2, 2, 3]) if n < 3 else 2, coin, changes)
        drawn.question = twin.Question(question.targets, memory)
    return drawn


# --- questions ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Figure:
    """A printed bracket of `kind` "delta" (at epsilon `at`) or "epsilon" (at delta `at`), and who printed it."""

    name: str
    kind: str
    at: float
    lower: float
    upper: float


def figures(drawn: Drawn, *, patient: bool = False) -> Iterator[tuple[str, Callable[[], list[Figure]]]]:
    """What is asked about a description: names, and calls that print figures or are refused.

    `patient`: also what takes seconds, which is left out of most descriptions otherwise.
    """
    rng = random.Random(drawn.seed + 10**9)  # noqa: S311
    growth = rng.choice([Fraction(1), Fraction(5, 4), *GROWTHS])
    epsilon, delta = math.log(growth) * rng.choice([0.5, 0.83, 1.0]), rng.choice([0.0, 1e-7, 0.0137, 0.0791, 0.313])
    protocol, reports, memory = drawn.protocol, drawn.reports, drawn.question.memory
    dear = not drawn.cheap

    def of(name: str, kind: str, at: float, bound: Bound) -> list[Figure]:
        return [Figure(name, kind, at, bound.lower, bound.upper)]

    if memory is not None:
        if reports == 1:
            asked = {"waves": memory.waves, "instantaneous": drawn.instantaneous, "changes": memory.changes}
            yield "waves", lambda: of("waves", "epsilon", delta, hs.dp.waves(protocol, delta=delta, **asked))
        return
    if drawn.rounds:

        def rounds() -> list[Any]:
            alone = list(drawn.rounds)
            return [hs.dp.per_person(each, reports=reports) for each in alone] if reports > 1 else alone

        if dear and rng.random() > 0.05 and not patient:  # seconds
            return
        if rng.random() < 0.03:
            yield (
                "compose_delta",
                lambda: of("compose_delta", "delta", epsilon, hs.dp.compose_delta(rounds(), epsilon=epsilon)),
            )
        yield "compose", lambda: of("compose", "epsilon", delta, hs.dp.compose(rounds(), delta=delta))
        return
    yield (
        "delta",
        lambda: of("delta", "delta", epsilon, hs.dp.delta(protocol, epsilon=epsilon, reports_per_person=reports)),
    )
    if rng.random() < (0.01 if dear else 0.2):
        yield (
            "epsilon",
            lambda: of("epsilon", "epsilon", delta, hs.dp.epsilon(protocol, delta=delta, reports_per_person=reports)),
        )
    if rng.random() < 0.5:
        yield (
            "pure",
            lambda: of("pure", "epsilon", 0.0, hs.dp.epsilon(protocol, delta=0.0, reports_per_person=reports)),
        )
    if reports == 1 and not dear and rng.random() < 0.1:
        yield "profile", lambda: _profile(hs.dp.profile(protocol), epsilon, delta, rng)


def _profile(profile: Any, epsilon: float, delta: float, rng: random.Random) -> list[Figure]:
    levels = [0.0, epsilon, epsilon / 2, epsilon / 3]
    bounds = profile.delta(levels)
    found = [
        Figure("profile.delta", "delta", level, float(bounds.lower[i]), float(bounds.upper[i]))
        for i, level in enumerate(levels)
    ]
    advantage = profile.advantage
    found.append(Figure("profile.advantage", "delta", 0.0, advantage.lower, advantage.upper))
    prior = rng.choice([0.5, 0.25, 0.125])
    guess, larger = profile.guess(prior), 1 - prior
    # The best guess is right with chance larger + smaller delta(ln(larger/smaller)).
    ends = ((guess.lower - larger) / prior, (guess.upper - larger) / prior)
    found.append(Figure("profile.guess", "delta", math.log(larger / prior), ends[0], ends[1]))
    if delta > 0:
        there = profile.epsilon([delta])
        found.append(Figure("profile.epsilon", "epsilon", delta, float(there.lower[0]), float(there.upper[0])))
    return found


def too_much(drawn: Drawn) -> bool:
    """Whether the twin would take too long: several rounds, the datasets of each chosen in view of those before."""
    return bool(drawn.rounds) and drawn.truth.work > _WORK


def wrong(figure: Figure, truth: twin.Twin) -> list[str]:
    """Which ends are on the wrong side of the truth, in words."""
    return _wrong_delta(figure, truth) if figure.kind == "delta" else _wrong_epsilon(figure, truth)


def _growth(epsilon: float) -> Fraction:
    return Fraction(math.exp(min(max(epsilon, 0.0), _FAR)))


def _wrong_delta(figure: Figure, truth: twin.Twin) -> list[str]:
    exact, pair = truth.delta(_growth(figure.at))
    said = []
    if Fraction(figure.lower) > exact * (1 + ROUNDING) + TRACE:
        said.append(f"lower {figure.lower!r} > exact {float(exact)!r}")
    if Fraction(figure.upper) < exact * (1 - ROUNDING) - TRACE:
        said.append(f"upper {figure.upper!r} < exact {float(exact)!r} at {_at(pair)}")
    return said


def _wrong_epsilon(figure: Figure, truth: twin.Twin) -> list[str]:
    said, slack = [], float(ROUNDING)
    if figure.at == 0:
        pure = truth.pure()
        exact = math.inf if pure is None else math.log(pure)
        if figure.lower > exact * (1 + slack) + 1e-12:
            said.append(f"lower {figure.lower!r} > exact {exact!r}")
        if figure.upper < exact * (1 - slack) - 1e-12:
            said.append(f"upper {figure.upper!r} < exact {exact!r}")
        return said
    level = Fraction(figure.at)
    if math.isfinite(figure.upper):
        delta, pair = truth.delta(_growth(figure.upper * (1 + slack) + 1e-12))
        if delta > level * (1 + ROUNDING) + TRACE:
            said.append(f"delta is {float(delta)!r} at upper {figure.upper!r} at {_at(pair)}")
    if figure.lower > 0:
        delta, _ = truth.delta(_growth(figure.lower * (1 - slack) - 1e-12))
        if delta < level * (1 - ROUNDING) - TRACE:
            said.append(f"delta is {float(delta)!r} at lower {figure.lower!r}")
    return said


def _at(pair: twin.Pair | None) -> str:
    return "rounds" if pair is None else f"others {pair.others}, target {pair.target}"

from __future__ import annotations

import itertools
import math
import time

import numpy as np
import numpy.typing as npt
import pytest

import hushuffle as hs
from hushuffle.attacks.linkage import (
    Similarity,
    TraceReports,
    randomize,
    report_scores,
    trace_scores,
    train,
    visit_scores,
)
from hushuffle.errors import InvalidInputError, UnsupportedProtocolError
from hushuffle.mechanisms.randomizers import Mechanism, base
from hushuffle.model.traces import Traces
from oracles.linkage_markov import hidden_log_likelihood, log_likelihood, normalised, profile

FLOORS = (1e-8, 1e-3)


def traces(rng: np.random.Generator, *, n: int, k: int, longest: int) -> Traces:
    """Uneven traces that repeat themselves, so that some moves are frequent and many are never seen."""
    lengths = rng.integers(1, longest + 1, n)
    return Traces.of([rng.choice(k, size=length, p=rng.dirichlet(np.full(k, 0.4))) for length in lengths], k=k)


def oracle(training: Traces, floor: float) -> list[tuple[list[float], list[list[float]]]]:
    return [profile(training.trace(i).tolist(), training.k, floor) for i in range(training.n)]


@pytest.mark.parametrize("floor", FLOORS)
@pytest.mark.parametrize("seed", range(6))
def test_profiles_are_relative_frequencies(seed: int, floor: float) -> None:
    rng = np.random.default_rng(seed)
    training = traces(rng, n=7, k=5, longest=12)
    profiles = train(training, floor=floor)
    assert (profiles.n, profiles.k, repr(profiles)) == (7, 5, "MarkovProfiles(n=7, k=5)")
    for i, (first, rows) in enumerate(oracle(training, floor)):
        visits = profiles.visits.toarray()[i]
        assert np.where(visits > 0, visits, floor).tolist() == pytest.approx(first)
        table = np.full((5, 5), floor)
        for pair, chance in zip(profiles.pairs.tolist(), profiles.moves.toarray()[i].tolist(), strict=True):
            if chance:
                table[divmod(pair, 5)] = chance
        assert table == pytest.approx(np.array(rows))


@pytest.mark.parametrize("floor", FLOORS)
@pytest.mark.parametrize("seed", range(6))
def test_scores_of_traces_are_the_likelihoods_of_the_paper(seed: int, floor: float) -> None:
    rng = np.random.default_rng(100 + seed)
    training, tested = traces(rng, n=6, k=4, longest=15), traces(rng, n=9, k=4, longest=8)
    slow = [[log_likelihood(trace.tolist(), user) for user in oracle(training, floor)] for trace in each(tested)]
    assert trace_scores(train(training, floor=floor), tested) == pytest.approx(np.array(slow), rel=1e-12, abs=1e-12)


def test_users_who_never_move_have_only_visits() -> None:
    profiles = train(Traces.of([[0], [1]], k=3))
    assert profiles.pairs.size == 0
    scores = trace_scores(profiles, Traces.of([[1, 1], [2]], k=3))
    low = math.log(1e-8)
    assert scores == pytest.approx(np.array([[2 * low, low], [low, low]]))


def each(tested: Traces) -> list[npt.NDArray[np.int64]]:
    return [tested.trace(i) for i in range(tested.n)]


def mechanisms(k: int) -> list[Mechanism]:
    return [
        hs.RandomizedResponse(k=k, epsilon=1.2),
        hs.RandomizedResponse(k=k, epsilon=math.inf),
        hs.LocalHashing(k=k, g=2, epsilon=0.7),
        hs.LocalHashing(k=k, g=3, epsilon=2.0),
        hs.LocalHashing(k=k, g=9, epsilon=3.0),
        hs.LocalHashing(k=k, g=2, epsilon=math.inf),
    ]


def laws(reports: TraceReports, i: int, *, noise_known: bool) -> list[list[float]]:
    """Q(report | x) for each report of person i and each x, up to the likelihood of the hash, one x at a time."""
    randomizer = reports.randomizer
    found = []
    for report in reports.reports[reports.offsets[i] : reports.offsets[i + 1]]:
        if isinstance(randomizer, hs.LocalHashing):
            law, hashed = randomizer.law().bucket, report[None, :-1]
            same = [int(randomizer.hashes.buckets(hashed, np.array([x]))[0]) == report[-1] for x in range(reports.k)]
        else:
            assert isinstance(randomizer, hs.RandomizedResponse)
            law, same = randomizer.law(), [x == report for x in range(reports.k)]
        high, low = (float(law.truth), float(law.lie)) if noise_known else (1.0, 0.0)
        row = [high if hit else low for hit in same]
        found.append(row if any(row) else [1.0] * reports.k)
    return found


@pytest.mark.parametrize("noise_known", [True, False])
@pytest.mark.parametrize("which", range(6))
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("longest", [1, 4])
def test_scores_of_reports_are_sums_over_every_path(longest: int, seed: int, which: int, noise_known: bool) -> None:
    rng = np.random.default_rng(200 + seed)
    k = 4
    training, tested = traces(rng, n=5, k=k, longest=10), traces(rng, n=6, k=k, longest=longest)
    reports = randomize(tested, randomizer=mechanisms(k)[which], rng=hs.reproducible(seed))
    for floor in FLOORS:
        users = oracle(training, floor)
        used = [normalised(user) for user in users] if noise_known else users
        slow = [
            [hidden_log_likelihood(laws(reports, i, noise_known=noise_known), user) for user in used]
            for i in range(reports.n)
        ]
        fast = report_scores(train(training, floor=floor), reports, noise_known=noise_known)
        assert fast == pytest.approx(np.array(slow), rel=1e-10, abs=1e-10)


def test_believed_reports_of_randomized_response_are_scored_as_events() -> None:
    rng = np.random.default_rng(7)
    training, tested = traces(rng, n=20, k=12, longest=30), traces(rng, n=20, k=12, longest=30)
    profiles = train(training)
    reports = randomize(tested, randomizer=hs.RandomizedResponse(k=12, epsilon=2.0), rng=hs.reproducible(1))
    believed = report_scores(profiles, reports, noise_known=False)
    assert believed == pytest.approx(trace_scores(profiles, reports.as_traces()), rel=1e-10)


@pytest.mark.parametrize(
    "randomizer",
    [
        hs.SubsetSelection(k=4, w=2, epsilon=1.0),
        hs.TargetSampling(targets=4, sigma=0.3, flood=2),
        hs.HadamardResponse(k=4, epsilon=1.0),
        hs.UnaryEncoding(k=4, epsilon=1.0, encoding="optimized"),
        hs.BitFlipping(width=2, p=0.2),
        hs.MatrixRandomizer(channel=hs.Channel(matrix=np.random.default_rng(3).dirichlet(np.ones(3), size=4))),
    ],
    ids=repr,
)
def test_scores_of_other_mechanisms_read_their_channel(randomizer: Mechanism) -> None:
    rng = np.random.default_rng(12)
    training, tested = traces(rng, n=5, k=4, longest=9), traces(rng, n=6, k=4, longest=4)
    reports = randomize(tested, randomizer=randomizer, rng=hs.reproducible(2))
    channel, users = randomizer.channel(), [normalised(user) for user in oracle(training, 1e-8)]
    rows = reports.reports.tolist()
    places = [channel.outputs.index(tuple(row) if isinstance(row, list) else row) for row in rows]
    columns = [channel.matrix[:, place].tolist() for place in places]
    ends = reports.offsets.tolist()
    slow = np.array(
        [[hidden_log_likelihood(columns[a:b], user) for user in users] for a, b in itertools.pairwise(ends)]
    )
    scores = report_scores(train(training), reports)
    # Up to a factor of each person's reports.
    assert scores - scores[:, :1] == pytest.approx(slow - slow[:, :1], rel=1e-9, abs=1e-9)


def test_progress_is_told_and_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(8)
    profiles, tested = train(traces(rng, n=6, k=5, longest=9)), traces(rng, n=11, k=5, longest=6)
    reports = randomize(tested, randomizer=hs.LocalHashing(k=5, g=2, epsilon=1.0), rng=hs.reproducible(1))
    told: list[float] = []
    whole = report_scores(profiles, reports, tell=told.append)
    assert told == pytest.approx([1 / 6, 2 / 6, 3 / 6, 4 / 6, 5 / 6, 1])
    monkeypatch.setattr(base, "_CELLS", 60)
    assert report_scores(profiles, reports).tolist() == whole.tolist()


def test_long_traces_do_not_underflow() -> None:
    rng = np.random.default_rng(9)
    training = traces(rng, n=3, k=6, longest=500)
    reports = randomize(training, randomizer=hs.RandomizedResponse(k=6, epsilon=0.5), rng=hs.reproducible(1))
    scores = report_scores(train(training), reports)
    assert np.isfinite(scores).all()


def test_what_cannot_be_scored() -> None:
    profiles = train(Traces.of([[0, 1]], k=3))
    with pytest.raises(InvalidInputError, match="at least one event for each user, got traces=<1 of 2 empty>"):
        train(Traces.of([[0], []], k=3))
    with pytest.raises(InvalidInputError, match="`floor` must be in"):
        train(Traces.of([[0]], k=3), floor=0.0)
    with pytest.raises(InvalidInputError, match="traces over the same 3 values as the profiles, got traces=4"):
        trace_scores(profiles, Traces.of([[0]], k=4))
    survey = hs.RandomizedResponse(k=4, epsilon=1.0)
    with pytest.raises(InvalidInputError, match="over the same 4 values as the traces, got randomizer=3"):
        randomize(Traces.of([[0]], k=4), randomizer=hs.RandomizedResponse(k=3, epsilon=1.0))
    flipped = randomize(Traces.of([[0]], k=8), randomizer=hs.BitFlipping(width=3, p=0.1))
    with pytest.raises(UnsupportedProtocolError, match="reports that support values, but the mechanism is BitFlipping"):
        report_scores(train(Traces.of([[0, 1]], k=8)), flipped, noise_known=False)
    reports = randomize(Traces.of([[0]], k=4), randomizer=survey)
    assert "RandomizedResponse" in repr(reports)
    with pytest.raises(InvalidInputError, match="reports over the same 3 values as the profiles, got reports=4"):
        report_scores(profiles, reports)
    with pytest.raises(InvalidInputError, match="at least one report for each person"):
        report_scores(profiles, randomize(Traces.of([[0], []], k=3), randomizer=hs.RandomizedResponse(k=3, epsilon=1)))
    hashed = randomize(Traces.of([[0]], k=4), randomizer=hs.LocalHashing(k=4, g=2, epsilon=1.0))
    with pytest.raises(UnsupportedProtocolError, match="To read reports as events needs randomized response"):
        hashed.as_traces()


def test_a_thousand_users_against_a_thousand_traces_take_no_longer_than_sorting() -> None:
    rng = np.random.default_rng(10)
    habits = rng.zipf(1.3, size=(1000, 30)) % 5000
    events = np.take_along_axis(habits, rng.integers(0, 30, (1000, 140)), axis=1).ravel()
    walks = Traces(events=events, offsets=np.arange(0, 140_001, 140), k=5000)
    former, latter = walks.split(70)
    start = time.process_time()
    trace_scores(train(former), latter)
    taken = time.process_time() - start
    numbers = rng.random(10**7)
    start = time.process_time()
    np.sort(numbers)
    unit = time.process_time() - start
    assert taken < 5 * unit


@pytest.mark.parametrize("how", ["cosine", "tf-idf"])
def test_similarities_of_visits_by_plain_loops(how: Similarity) -> None:
    rng = np.random.default_rng(3)
    known = [rng.integers(6, size=rng.integers(1, 8)).tolist() for _ in range(9)]
    sent = [rng.integers(7, size=rng.integers(1, 5)).tolist() for _ in range(5)]  # 6 is a place that nobody knows
    for trace in known:
        trace.append(0)  # a place where everybody was
    scores = visit_scores(train(Traces.of(known, k=7)), Traces.of(sent, k=7), how=how)
    held = [sum(place in trace for trace in known) for place in range(7)]
    weights = [1.0 if how == "cosine" else math.log(9 / count) if count else 0.0 for count in held]
    for i, mine in enumerate(sent):
        for j, theirs in enumerate(known):
            a, b = ([trace.count(place) * weights[place] for place in range(7)] for trace in (mine, theirs))
            lengths = math.hypot(*a) * math.hypot(*b)
            expected = sum(x * y for x, y in zip(a, b, strict=True)) / lengths if lengths else 0.0
            assert scores[i, j] == pytest.approx(expected, abs=1e-12)
    assert scores.min() >= 0.0
    assert scores.max() <= 1.0


def test_visits_that_cannot_be_compared() -> None:
    profiles = train(Traces.of([[0], [1]], k=2))
    with pytest.raises(InvalidInputError, match="`how` must be cosine or tf-idf"):
        visit_scores(profiles, Traces.of([[0]], k=2), how="jaccard")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="over the same 2 values"):
        visit_scores(profiles, Traces.of([[0]], k=3), how="cosine")
    with pytest.raises(InvalidInputError, match="at least one event"):
        visit_scores(profiles, Traces.of([[]], k=2), how="cosine")

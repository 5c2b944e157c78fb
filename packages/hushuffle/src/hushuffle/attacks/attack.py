"""Linkage attacks: load the traces of users, run the attacks, and report how often each attack succeeds."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final, Literal, get_args

import numpy as np
import numpy.typing as npt
import polars as pl

from hushuffle import _checks
from hushuffle._checks import fail
from hushuffle.attacks import linkage, results
from hushuffle.attacks.detection import detection_curve
from hushuffle.attacks.results import FEW, Events, Outcome, Try
from hushuffle.mechanisms import randomizers
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import LocalHashing, RandomizedResponse, SubsetSelection
from hushuffle.mechanisms.shufflers import UniformShuffle
from hushuffle.model import Report
from hushuffle.model.citation import PIE
from hushuffle.model.report import software
from hushuffle.model.traces import Traces
from hushuffle.questions import pie, pse
from hushuffle.randomness import Randomness, reproducible, secure
from hushuffle.tables.categories import ANYTHING, MISSING
from hushuffle.tables.published import load_checkins, load_ratings
from hushuffle.tables.reader import TableReader, open_source

Kind = Literal["table", "checkins", "ratings"]


def load_traces(
    source: str | Path,
    *,
    kind: Kind = "table",
    user: str = "user",
    item: str = "item",
    time: str | None = None,
    stars: float = 4.0,
) -> Traces:
    r"""Return every user's events by time (by row without a `time` column); text must sort by time, as ISO 8601 does.

    Errors show no value of the data.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = Path(folder, "visits.csv").write_text("user,item,day\nann,bar,2\nbob,inn,1\nann,inn,1\n")
    ...     walks = load_traces(Path(folder, "visits.csv"), time="day")
    >>> walks, [walks.labels[code] for code in walks.trace(0)]
    (Traces(k=2, n=2), ['inn', 'bar'])
    """
    if kind not in get_args(Kind):
        _checks.reject("kind", ", ".join(get_args(Kind)), kind)
    if kind == "checkins":
        return load_checkins(source)
    if kind == "ratings":
        return load_ratings(source, least=stars)
    wanted = {"user": (user, ANYTHING), "item": (item, ANYTHING)} | ({} if time is None else {"time": (time, ANYTHING)})
    reader = TableReader(open_source(str(source), base_folder=Path()), wanted)
    blocks = []
    for block in reader.blocks():
        for name, (column, _) in wanted.items():
            sentence = f": {{count}} of {block.frame.height:,} records are missing."
            reader.faults[name].refuse(MISSING, f"{block.part.name}: column {column!r}", sentence)
        blocks.append(block.frame)
    frame = pl.concat(blocks)
    if not frame.height:
        fail(f"{source}: no records.")
    labels = tuple(frame["item"].unique().sort().to_list())
    users, items = _ranked(frame["user"]), _ranked(frame["item"])
    when = np.arange(frame.height) if time is None else _in_order(frame["time"])
    return Traces.from_table(users, items, when, k=len(labels), labels=labels)


def _in_order(times: pl.Series) -> npt.NDArray[np.int64]:
    """Return the rank of each time: compared as numbers if all times are numbers, else compared as text."""
    for dtype in (pl.Int64, pl.Float64):
        numbers = times.cast(dtype, strict=False)
        if not numbers.null_count():
            return _ranked(numbers)
    return _ranked(times)


def _ranked(column: pl.Series) -> npt.NDArray[np.int64]:
    return column.rank("dense").cast(pl.Int64).to_numpy() - 1


Mechanism = Literal["randomized-response", "local-hashing", "subset-selection"]
Score = Literal["bayes", "plain", "cosine", "tf-idf"]
Tell = Callable[[float], None]

_RESOLUTION: Final = 0.01
"""Log-likelihoods are rounded to this many nats before their entropy is estimated; rounding only loses information."""

_FINE: Final = 1e-4
"""Cosine scores are rounded to this precision before their entropy is estimated."""


def link(
    traces: Traces,
    *,
    source: str = "traces",
    epsilons: Sequence[float] = (math.inf,),
    mechanisms: Sequence[Mechanism] = ("randomized-response", "local-hashing"),
    buckets: int | None = None,
    knowledge: linkage.Knowledge = "partial",
    split: linkage.Split = "half",
    known: Sequence[int | None] = (None,),
    events: Sequence[Events] = (1,),
    score: Score = "bayes",
    repetitions: int = 1,
    at_least: int = 10,
    seed: int | None = None,
    progress: Callable[[str, float], None] | None = None,
) -> Report:
    """Return how often an attacker names the right person, for every combination of the listed settings.

    Events are sent unchanged (once for all mechanisms) at epsilon math.inf. "bayes" uses the exact likelihood of
    reports; the other scores treat reports as true events. With `known` None the attacker knows all training events.
    If there are more than 2,000 people, each repetition attacks the reports of 2,000 drawn at random, among all people.

    Source: Murakami, Takahashi 2021, section 5.

    >>> walks = Traces.of([[place] * 10 for place in range(8)], k=8)
    >>> study = link(walks, epsilons=[math.inf], seed=1)
    >>> print(study.findings[0].bound)
    0 to 0.3695 (95% interval)
    """
    _check(epsilons, mechanisms, known, events, score)
    tell = progress or (lambda _what, _share: None)
    times = _checks.integer("repetitions", repetitions, low=1)
    least = _checks.integer("at_least", at_least, low=2)
    chosen = traces.lengths >= least
    if np.count_nonzero(chosen) < 2:
        fail(f"{source}: fewer than two people have {least} or more events. Choose a smaller `at_least`.")
    people = traces.select(chosen)
    coins = secure() if seed is None else reproducible(seed)
    noises = list(_noises(people.k, epsilons=epsilons, mechanisms=mechanisms, buckets=buckets))
    tries = [
        Try(mechanism=name, randomizer=randomizer, known=size, events=sent)
        for size, sent in itertools.product(known, events)
        for name, randomizer in noises
    ]
    outcomes = []
    for done, tried in enumerate(tries):
        divided = partial(
            linkage.scene,
            knowledge=knowledge,
            split=split,
            training=tried.known,
            events=None if tried.events == "all" else tried.events,
        )
        share = _within(partial(tell, f"linking, {results.noise_of(tried)}"), done / len(tries), 1 / len(tries))
        outcomes.append(_attempt(tried, people, divided, score=score, times=times, coins=coins, tell=share))
    tell("done", 1.0)
    settings = (
        ("people", f"{people.n:,}"),
        ("left out", f"{traces.n - people.n:,} with fewer than {least} events"),
        ("attacked", f"the reports of {min(people.n, linkage.ATTACKED):,} people, each compared with all people"),
        ("values", f"{people.k:,}"),
        ("attacker", f"{knowledge} knowledge, split {split}"),
        ("score", score),
        ("repetitions", str(times)),
        ("coins", "cryptographic" if seed is None else f"reproducible, seed {seed}"),
    )
    return Report(
        key="linkage",
        title=f"Linkage attack on {source}",
        question="How often does an attacker who knows people's past events find out whose reports are whose?",
        answers=results.answers(outcomes, people.n),
        settings=settings,
        findings=tuple(results.findings(results.headline(outcomes), people.n)),
        tables=(results.table(outcomes, people.n),),
        charts=results.charts(outcomes),
        warnings=tuple(results.concerns(outcomes, people.n, halved=split == "half")),
        citations=(PIE.at("Section 5"),),
        software=software("polars"),
    )


def _check(
    epsilons: Sequence[float],
    mechanisms: Sequence[str],
    knowledge: Sequence[int | None],
    events: Sequence[Events],
    score: str,
) -> None:
    lists = {"epsilons": epsilons, "mechanisms": mechanisms, "known": knowledge, "events": events}
    for name, values in lists.items():
        if not values or len(set(values)) < len(values):
            _checks.reject(name, "a list without repetitions, not empty", values)
    for mechanism in mechanisms:
        if mechanism not in get_args(Mechanism):
            _checks.reject("mechanisms", " or ".join(get_args(Mechanism)), mechanism)
    if score not in get_args(Score):
        _checks.reject("score", " or ".join(get_args(Score)), score)
    noisy = any(epsilon < math.inf for epsilon in epsilons)
    if score in linkage.SIMILARITIES and noisy and set(mechanisms) != {"randomized-response"}:
        hint = "The scores cosine and tf-idf need randomized-response, or no noise (an infinite epsilon)."
        _checks.reject("score", "bayes or plain if a mechanism is not randomized-response", score, hint)


def _noises(
    k: int, *, epsilons: Sequence[float], mechanisms: Sequence[Mechanism], buckets: int | None
) -> Iterator[tuple[str, randomizers.Mechanism]]:
    for epsilon in sorted(epsilons, reverse=True):
        if epsilon == math.inf:
            yield "no noise", RandomizedResponse(k=k, epsilon=epsilon)
            continue
        for mechanism in mechanisms:
            if mechanism == "randomized-response":
                yield "randomized response", RandomizedResponse(k=k, epsilon=epsilon)
            elif mechanism == "local-hashing":
                hashing = LocalHashing(k=k, g=buckets or LocalHashing.best_g(epsilon), epsilon=epsilon)
                yield f"local hashing (g = {hashing.g:,})", hashing
            else:
                selection = SubsetSelection(k=k, w=SubsetSelection.best_w(k, epsilon), epsilon=epsilon)
                yield f"subset selection (w = {selection.w:,})", selection


def _attempt(
    tried: Try,
    people: Traces,
    divided: Callable[[Traces], linkage.Scene],
    *,
    score: Score,
    times: int,
    coins: Randomness,
    tell: Tell,
) -> Outcome:
    if math.isinf(tried.epsilon) and people.n <= linkage.ATTACKED:
        times = 1  # nothing would change but the order of ties
    how = linkage.place_weights(linkage.train(divided(people).training)) if score == "tf-idf" else score
    places, scores, again = [], np.empty((0, 0)), 0.0
    for done in range(times):
        drawn = linkage.attacked(people.n, rng=coins)
        scene = divided(people.select(drawn))
        reports = linkage.randomize(scene.reported, randomizer=tried.randomizer, rng=coins)
        share = _within(tell, done / times, 1 / times)
        against = partial(linkage.scores_against, people, divided, reports, how=how, tell=share)
        ranks, scores = linkage.ranks_among(people.n, drawn, against, rng=coins)
        places.append(ranks)
        owners = np.repeat(np.arange(drawn.size), scene.reported.lengths)
        again = float(np.mean(linkage.train(scene.training).visits[owners, scene.reported.events] > 0))
    protocol = Protocol(randomizer=tried.randomizer, shuffler=UniformShuffle(), n=people.n)
    sent = int(divided(people.select([int(np.argmax(people.lengths))])).reported.lengths[0])
    least = pie.bayes_error(protocol) if sent == 1 else pie.composed_error(protocol, reports=sent)
    law = tried.randomizer.law()
    of_paper = sent == 1 or law.symmetric is not None or law.bucket is not None  # else by the chain rule alone
    bits = (pie.published_alpha if of_paper else pie.composed_alpha)(protocol, reports=sent)
    published = pie.fano_error(bits.upper, people.n)
    resolution = _FINE if score in linkage.SIMILARITIES else _RESOLUTION
    return Outcome(
        tried=tried,
        places=np.concatenate(places),
        detection=detection_curve(linkage.genuine_scores(scores), linkage.impostor_scores(scores)),
        entropy=None if people.n < FEW else pse.from_matrix(scores, resolution=resolution),
        least=least,
        published=published,
        again=again,
    )


def _within(tell: Tell, start: float, width: float) -> Tell:
    tell(start)
    return lambda share: tell(start + share * width)

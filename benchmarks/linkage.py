"""Everybody's traces against everybody's profiles: HUSHUFFLE_DATA=folder python benchmarks/linkage.py.

With two numbers, `python benchmarks/linkage.py PEOPLE PLACES` generates traces of so many people and places, and
attacks one and three places of each person, without noise and by randomized response.

Times are ratios to sorting 10^7 floats in the same run. The loop that scores one trace against one user with
dictionaries runs for a few users only; its time for all of them is that times the ratio of users.
"""

from __future__ import annotations

import itertools
import math
import os
import resource
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import hushuffle as hs
from hushuffle.attacks import linkage
from hushuffle.attacks.attack import link
from hushuffle.questions import pse
from hushuffle.tables.published import load_checkins

LOOPED = 5
COLUMNS = ("epsilon", "events reported", "interval", "certified least error", "Fano's bound, published")


def timed(work: Callable[[], Any], runs: int = 3) -> tuple[float, Any]:
    times, result = [], None
    for _ in range(runs):
        start = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - start)
    return statistics.median(times), result


def looped(scene: linkage.Scene, users: int) -> Any:
    """Return the scores of all traces against the first `users`, by the definition."""
    reported = [scene.reported.trace(i).tolist() for i in range(scene.reported.n)]
    scores = np.empty((len(reported), users))
    for user in range(users):
        known = scene.training.trace(user).tolist()
        visits, moves, left = Counter(known), Counter(itertools.pairwise(known)), Counter(known[:-1])
        for i, trace in enumerate(reported):
            total = math.log(max(visits[trace[0]] / len(known), linkage.FLOOR))
            for before, after in itertools.pairwise(trace):
                seen = moves[before, after]
                total += math.log(seen / left[before] if seen else linkage.FLOOR)
            scores[i, user] = total
    return scores


def generated(n: int, k: int, *, mean: int = 20) -> hs.Traces:
    """Return traces of 10 events or more: three of four are at one of eight favourite places, the nearest most often.

    Three of ten places have probabilities proportional to 1/rank, all others are equally likely.
    """
    rng = np.random.default_rng(1)
    lengths = 9 + rng.geometric(1 / (mean - 9), n)

    def places(size: int) -> Any:
        ranked = np.floor(k ** rng.random(size, dtype=np.float32)).astype(np.int32) - 1
        return np.where(rng.random(size, dtype=np.float32) < 0.3, ranked, rng.integers(0, k, size, dtype=np.int32))

    favourites, total = places(8 * n).reshape(n, 8), int(lengths.sum())
    events = favourites[np.repeat(np.arange(n), lengths), np.minimum(rng.exponential(1.5, total), 7).astype(np.int8)]
    new = rng.random(total) < 0.25
    events[new] = places(int(new.sum()))
    return hs.Traces(events=events, offsets=np.append(0, np.cumsum(lengths)), k=k)


def at_size(n: int, k: int) -> None:
    people = generated(n, k)
    start = time.process_time()
    study = link(
        people,
        epsilons=[math.inf, 14.0, 10.0],
        mechanisms=["randomized-response"],
        events=[1, 3],
        score="plain",
        seed=1,
    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"{people.events.size:,} events; attacks: {time.process_time() - start:.0f} CPU s; peak of all: {peak:,} MB")
    (table,) = study.tables
    wanted = [table.columns.index(name) for name in COLUMNS]
    for row in (COLUMNS, *([row[column] for column in wanted] for row in table.rows)):
        print("".join(f"{cell!s:<32}" for cell in row))


def main() -> None:
    if len(sys.argv) == 3:
        at_size(int(sys.argv[1]), int(sys.argv[2]))
        return
    folder = os.environ.get("HUSHUFFLE_DATA")
    if folder is None:
        print("HUSHUFFLE_DATA is not set: it names the folder with foursquare_nyc/. Nothing measured.")
        return
    floats = np.random.default_rng(0).random(10**7)
    unit, _ = timed(lambda: np.sort(floats))
    traces = load_checkins(Path(folder) / "foursquare_nyc")
    whole, one = linkage.scene(traces, events=None), linkage.scene(traces)
    rows: list[tuple[str, float]] = [("sort 10^7 floats (the unit)", unit)]
    seconds, profiles = timed(lambda: linkage.train(whole.training))
    rows.append((f"train {profiles!r}", seconds))
    seconds, scores = timed(lambda: linkage.trace_scores(profiles, whole.reported))
    rows.append((f"score {scores.shape[0]:,} x {scores.shape[1]:,} traces of {whole.reported.events.size:,}", seconds))
    slow, few = timed(lambda: looped(whole, LOOPED), 1)
    assert np.allclose(few, scores[:, :LOOPED])
    rows.append((f"the same by loops, {LOOPED} users, extrapolated", slow * profiles.n / LOOPED))
    rows.append(("divergence of the scores, with interval", timed(lambda: pse.from_matrix(scores, resolution=0.01))[0]))
    kinds = (hs.RandomizedResponse(k=traces.k, epsilon=8.0), hs.LocalHashing(k=traces.k, g=10 * traces.k, epsilon=8.0))
    for randomizer in kinds:
        reports = linkage.randomize(one.reported, randomizer=randomizer, rng=hs.reproducible(1))
        seconds, _ = timed(lambda reports=reports: linkage.report_scores(profiles, reports))  # type: ignore[misc]
        rows.append((f"score one report each, {type(randomizer).__name__}", seconds))
    print(f"{'what':<58}{'seconds':>9}{'units':>9}")
    for what, seconds in rows:
        print(f"{what:<58}{seconds:>9.3f}{seconds / unit:>9.2f}")


if __name__ == "__main__":
    main()

"""Runs of plans on data: aggregates on generated records, and k-means on MNIST with the Rand index (see figure 8)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from hushuffle.mechanisms.randomizers import TargetSampling
from hushuffle.model import Report, Table, number
from hushuffle.model.citation import LADJEL
from hushuffle.plans import (
    CentroidNoise,
    GroupingQuery,
    GroupingSet,
    aggregate,
    generate_table,
    k_means,
    use_chance,
)
from hushuffle.plans.centroids import nearest
from hushuffle.questions import traffic
from hushuffle.randomness import reproducible
from hushuffle.tables.published import Digits, load_digits
from hushuffle_network.queries import plain_k_means, rand_index, run_aggregate, run_k_means
from hushuffle_papers.base import Request, chart, claim, study, target
from hushuffle_papers.ladjel2021.traffic import DELTA, drawn

_COLUMNS: Final = ("a", "b", "c", "d")
_RATES: Final = (0.2, 0.5, 0.9)
_BATCH: Final = 500
_DUMMIES: Final = 50
_RADIUS: Final = 10.0


@target(
    "ladjel2021/figure-8-aggregate",
    "Aggregate run over generated records: costs, used tuples and errors of the answers",
    quick={"sizes": (1000, 20_000), "rates": (0.5,)},
    seconds=60.0,
)
def generated_study(
    request: Request, *, sizes: Sequence[int] = (10_000, 30_000, 100_000), rates: Sequence[float] = (0.1, 0.2, 0.5)
) -> Report:
    sets = tuple(GroupingSet(columns=(name,), sizes=(20,)) for name in _COLUMNS)
    functions: Any = ("count", "avg", "min", "max")
    query = GroupingQuery(grouping_sets=sets, values=("x",), functions=functions, partitions=20)
    rows: list[tuple[Any, ...]] = []
    errors: dict[tuple[str, float], list[float]] = {}
    agree, off = list[bool](), list[float]()
    cases = [(kind, size, s) for kind in ("uniform", "skewed") for s in rates for size in sizes]
    for kind, size, sigma in request.each(cases, "{1:,} {0} records, sigma = {2:g}"):
        table = generate_table(query, size, distribution=kind, seed=request.seed)  # type: ignore[arg-type]
        plan = aggregate(query, people=size, sigma=sigma, dummies=_DUMMIES, batch=_BATCH)
        run = run_aggregate(plan, query, table, rng=reproducible(request.seed))
        sent = sum(exchange.costs.messages for exchange in run.exchanges)
        agree.append(sent == len(sets) * (size + -(-size // _BATCH) * (_BATCH + _DUMMIES)))
        chance = use_chance(TargetSampling(targets=20, sigma=sigma))
        spread = (size * chance * (1 - chance)) ** 0.5
        off += [abs(used - size * chance) / spread for used in run.used]
        pairs = list(zip(run.true, run.estimated, strict=True))
        counts = max(float(np.abs(guess.count / true.count - 1).max()) for true, guess in pairs)
        averages = max(float(np.abs(guess.avg["x"] / true.avg["x"] - 1).max()) for true, guess in pairs)
        errors.setdefault((kind, sigma), []).append(counts)
        total = traffic.plan_guarantee(plan, delta=DELTA).epsilon
        rows.append((kind, size, sigma, sum(run.used) / (4 * size), sent, counts, averages, total))
    measures = ("share used", "messages to compute nodes", "error of counts", "error of averages", "epsilon")
    smallest, largest = min(sizes), max(sizes)
    records = f"Generated records of {smallest:,} to {largest:,} people."
    first, last = (max(float(row[6]) for row in rows if row[1] == size) for size in (smallest, largest))
    return study(
        "Aggregate over generated records",
        "How accurate are the answers, and do counted messages and used records agree with the formulas?",
        claim(
            "section IV-D",
            "The volume is that of S_t + SF (n + d) messages: S_t sources, SF scramblers of n sources and d dummies.",
            all(agree),
            f"In {sum(agree)} of {len(agree)} runs the number of counted messages is that of the formula.",
            quote="Each scrambler must open a secure communication channel with … the volume of exchanged messages is",
            data=records,
        ),
        "Random targets are drawn among all, as by the algorithm, so that S (1 - sigma + sigma/T) of S tuples are "
        f"expected to be used. None of {len(off)} counts differs by more than {max(off):.1f} standard deviations.",
        f"Averages of groups are off by at most {last:.2%} with {largest:,} records and {first:.2%} with "
        f"{smallest:,}; counts, scaled up, by at most {max(row[5] for row in rows if row[1] == largest):.1%} and "
        f"{max(row[5] for row in rows if row[1] == smallest):.1%}: that of the rarest of 80 groups.",
        "Epsilon depends on the batch, not on how many people take part beyond it, nor on how records are distributed.",
        Table(
            key="runs",
            title="One run each",
            caption="Largest relative errors over all groups of the 4 grouping sets.",
            columns=("records", "people", "sigma", *measures),
            rows=tuple(rows),
        ),
        chart(
            "errors",
            "Largest relative error of a group's count",
            "Counts are scaled by the probability that a record is used; one run per point.",
            ("people", "relative error"),
            [drawn(f"{kind}, sigma = {s:g}", sizes, line) for (kind, s), line in errors.items()],
            log="xy",
        ),
        settings=(
            ("records", "generated: 4 grouping attributes of 20 intervals, one value"),
            ("batch, dummies", "500, 50"),
            ("delta", "1e-4 in all"),
            ("seed", str(request.seed)),
        ),
        citations=(LADJEL.at("section V"),),
    )


@target(
    "ladjel2021/figure-8-mnist",
    "K-means on MNIST with and without sampling: Rand index on the test images",
    quick={"images": 1000, "draws": 1, "iterations": 2, "rates": (0.9,), "scales": (50.0,)},
    data=("mnist",),
    seconds=180.0,
)
def digits(request: Request, *, images: int | None = None, **sizes: Any) -> Report:
    """Return the study of k-means on MNIST (or its first `images`): K = 10, I = 10, Rand index on test images."""
    folder = request.folder("mnist")
    train, test = (load_digits(folder, part=part) for part in ("train", "t10k"))
    first = [Digits(images=part.images[:images], labels=part.labels[:images]) for part in (train, test)]
    return digits_study(request, *first, **sizes)


def digits_study(
    request: Request,
    train: Digits,
    test: Digits,
    *,
    draws: int = 3,
    iterations: int = 10,
    rates: Sequence[float] = _RATES,
    scales: Sequence[float] = (50.0, 100.0, 200.0),
) -> Report:
    images, training = (part.images.astype(np.float32) / 255 for part in (train, test))
    size: dict[str, Any] = {"people": train.n, "centroids": 10, "iterations": iterations, "dummies": 50, "batch": 500}
    public = {s: k_means(variant="public-centroids", sigma=s, **size) for s in rates}
    noises = {scale: CentroidNoise(kind="gaussian", radius=_RADIUS, scale=scale) for scale in scales}
    private = {
        scale: k_means(variant="private-centroids", sigma=rates[0], noise=noise, **size)
        for scale, noise in noises.items()
    }
    indices: dict[str, list[float]] = {}
    chance = []
    for draw in range(draws):
        rng = np.random.default_rng(request.seed + draw)
        initial = training[rng.choice(len(training), 10, replace=False)]
        chance.append(rand_index(test.labels.astype(np.int64), rng.integers(10, size=test.n)))

        def score(centroids: Any) -> float:
            return rand_index(test.labels.astype(np.int64), nearest(training, centroids[-1]))

        request.tell(f"start {draw + 1}, no sampling", draw / draws)
        indices.setdefault("no sampling", []).append(score(plain_k_means(images, initial, iterations=iterations)))
        for place, (s, plan) in enumerate(public.items()):
            request.tell(f"start {draw + 1}, sigma = {s:g}", (draw + (place + 1) / 8) / draws)
            run = run_k_means(plan, images, initial, rng=reproducible(request.seed + draw))
            indices.setdefault(_public(s), []).append(score(run.centroids))
        for place, (scale, plan) in enumerate(private.items()):
            request.tell(f"start {draw + 1}, noise {scale:g}", (draw + (place + 4) / 8) / draws)
            run = run_k_means(plan, images, initial, noise=noises[scale], rng=reproducible(request.seed + draw))
            indices.setdefault(_private(scale), []).append(score(run.centroids))
    plans = {_public(s): plan for s, plan in public.items()} | {_private(each): plan for each, plan in private.items()}
    guarantees = {name: traffic.plan_guarantee(plan, delta=DELTA).epsilon for name, plan in plans.items()}
    plain = indices["no sampling"]
    lost = max(abs(a - b) for s in rates for a, b in zip(plain, indices[_public(s)], strict=True))
    between = max(plain) - min(plain)
    return study(
        "K-means on MNIST: loss of Rand index by sampling",
        "How well do ten centroids distinguish the digits, with and without sampling?",
        claim(
            "section V",
            "Even sigma = 0.9 changes next to nothing in the result of K-means.",
            lost < 0.005,
            f"Sampling changes the Rand index by at most {number(lost)}; another start of K-means changes it by "
            f"{number(between)}.",
            quote="the proportion of correctly clustered tuples for high sampling rates (… =0.9 … is very close to "
            "that obtained when we do not sample",
            printed="0.9",
            data=f"MNIST, {train.n:,} images for training, {test.n:,} for the Rand index, {draws} starts.",
        ),
        f"Random labels score {number(sum(chance) / len(chance))}, so that a Rand index of {number(max(plain))} is "
        "less than it seems.",
        "The figures of sampling alone are conditional on public centroids. Counting the centroids too (released "
        f"with noise, sigma = {rates[0]:g}): "
        + ", ".join(
            f"epsilon {number(guarantees[_private(scale)].upper, up=True)} at a Rand index of "
            f"{number(float(np.mean(indices[_private(scale)])))}"
            for scale in scales
        )
        + ".",
        Table(
            key="rand",
            title="Rand index on the test images",
            caption="Epsilon of the traffic; with noise, it also covers the released centroids.",
            columns=("variant", *(f"start {draw + 1}" for draw in range(draws)), "epsilon"),
            rows=tuple((name, *line, guarantees.get(name, "none")) for name, line in indices.items()),
        ),
        settings=(
            ("images", f"{train.n:,} for training, {test.n:,} for the Rand index"),
            ("first centroids", "ten random test images, taken as public"),
            ("iterations", str(iterations)),
            ("batch, dummies", "500, 50"),
            ("delta", "1e-4 in all"),
            ("seed", str(request.seed)),
        ),
        citations=(LADJEL.at("section V"),),
    )


def _public(sigma: float) -> str:
    return f"sigma = {sigma:g}, public centroids"


def _private(scale: float) -> str:
    return f"centroids with noise of scale {scale:g}"

"""Build plans of two classic queries: aggregates by grouping sets, and k-means."""

from __future__ import annotations

from typing import Literal, Unpack, get_args

from hushuffle import _checks
from hushuffle.plans.aggregates import GroupingQuery
from hushuffle.plans.centroids import CentroidNoise
from hushuffle.plans.cluster import Cluster, Traffic, TrafficNumbers
from hushuffle.plans.plan import Carries, Data, Plan, Release
from hushuffle.plans.result_noise import MOST_PEOPLE, ResultNoise, share_of_set
from hushuffle.plans.stages import Stage, staged

PerPerson = Literal["all", "one"]
Variant = Literal["private-centroids", "public-centroids", "hidden"]

CHOSEN_BLINDLY = "The grouping set of each person is chosen independently of all data, and may be public."
CENTROIDS_PUBLIC = (
    "This epsilon assumes that the centroids of every iteration are public, and does not count what they reveal about "
    "people."
)


def messages(
    name: str, *, sources: int, targets: int, reads: tuple[str, ...] = (), **traffic: Unpack[TrafficNumbers]
) -> Cluster:
    """Return a cluster with data-dependent, sampled targets; keyword arguments are the fields of `Traffic`.

    Source: docs/theory/traffic.md, Theorems 1 to 3.

    >>> import hushuffle as hs
    >>> hs.plans.messages("ages", sources=1000, targets=20, sigma=0.2, reads=("people",), dummies=50,
    ...     batch=100).scramblers
    10
    """
    return Traffic(**traffic).cluster(name, sources=sources, targets=targets, reads=reads)


def aggregate(
    query: GroupingQuery,
    *,
    people: int,
    per_person: PerPerson = "all",
    epsilon: float | None = None,
    **traffic: Unpack[TrafficNumbers],
) -> Plan:
    """Return the plan of a query with grouping sets: from people to compute nodes, and from the nodes to the result.

    Args:
        query: the grouping sets and functions.
        people: number of people, one row each.
        per_person: "all": every row goes to every grouping set, whose epsilons add up. "one": each person
            answers one grouping set, chosen independently of the data; the maximum of their epsilons counts.
        epsilon: pure epsilon (nats) of all released results for one person; the sets that a person answers share it
            equally (`ResultNoise`). None: the results have no noise, and no guarantee covers them.
        traffic: `sigma` and the other fields of `Traffic`: convention, flood, dummies, batch, min_batch, capped.

    Source: Ladjel, Anciaux, Bellet, Scerri 2021 (examples 5 and 6); docs/theory/traffic.md, Theorems 6 and 10.

    >>> import hushuffle as hs
    >>> sets = tuple(hs.plans.GroupingSet(columns=(name,), sizes=(20,)) for name in ("age", "bmi"))
    >>> query = hs.plans.GroupingQuery(grouping_sets=sets, partitions=20)
    >>> every = hs.plans.aggregate(query, people=10_000, sigma=0.2, dummies=50, batch=100)
    >>> one = hs.plans.aggregate(query, people=10_000, sigma=0.2, dummies=50, batch=100, per_person="one")
    >>> [len(plan.reachable(plan.data[0].name)) for plan in (every, one)]
    [2, 1]
    >>> noisy = hs.plans.aggregate(query, people=10_000, epsilon=1.0, sigma=0.2, dummies=50, batch=100)
    >>> [(release.name, release.epsilon) for release in noisy.releases]
    [('results by age', 0.5), ('results by bmi', 0.5)]
    """
    if per_person not in get_args(PerPerson):
        _checks.reject("per_person", "all or one", per_person)
    sets = query.grouping_sets
    low = 1 if per_person == "all" else len(sets)
    count = _checks.integer("people", people, low=low, high=None if epsilon is None else MOST_PEOPLE)
    names = [f"people grouped by {one.name}" if per_person == "one" else "people" for one in sets]
    sizes = parts(count, len(sets)) if per_person == "one" else [count] * len(sets)
    share = None if epsilon is None else share_of_set(query, epsilon, everybody=per_person == "all")
    if share is not None:
        ResultNoise(query=query, epsilon=share)
    stages = [
        Stage(
            sends=(f"send by {grouping.name}",),
            nodes=(nodes := f"compute by {grouping.name}"),
            targets=query.partitions,
            reads=((data,),),
            columns=(frozenset(grouping.columns),),
            release=None
            if share is None
            else Release(name=f"results by {grouping.name}", start=nodes, epsilon=share, exact=True),
        )
        for grouping, data in zip(sets, names, strict=True)
    ]
    return staged(
        f"Aggregate over {len(sets)} grouping set{'s' if len(sets) > 1 else ''}",
        data=[Data(name=name, items=size) for name, size in dict(zip(names, sizes, strict=True)).items()],
        stages=stages,
        traffic=Traffic(**traffic),
        assumptions=(CHOSEN_BLINDLY,) if per_person == "one" else (),
    )


def parts(people: int, count: int) -> list[int]:
    """Return the sizes of `count` parts of `people` people; sizes differ by at most one."""
    return [people // count + (part < people % count) for part in range(count)]


def k_means(
    *,
    people: int,
    centroids: int,
    iterations: int,
    variant: Variant,
    noise: CentroidNoise | None = None,
    **traffic: Unpack[TrafficNumbers],
) -> Plan:
    """Return the plan of k-means: in every iteration, each person's point goes to the node of its nearest centroid.

    The first centroids are public and chosen independently of the data. Variants:

    - "private-centroids": every iteration releases its centroids with `noise`. The next iteration depends only on a
      person's own point and on public centroids. Redirected messages never carry data.
    - "public-centroids": epsilon is conditional on public centroids; it does not count what the centroids reveal.
    - "hidden": as published. One point moves the centroids, and the centroids move all messages of the next round, so
      `Plan.refusals` states why there is no guarantee.

    Args:
        people: number of people, one point each.
        centroids: number K of centroids, >= 2.
        iterations: number I of iterations, >= 1.
        variant: see above.
        noise: the noise on the released centroids, for "private-centroids" only.
        traffic: `sigma` and the other fields of `Traffic`: convention, flood, dummies, batch, min_batch, capped.

    Source: Ladjel, Anciaux, Bellet, Scerri 2021 (K-means, corrected); docs/theory/traffic.md, Theorem 7.

    >>> import hushuffle as hs
    >>> hidden = hs.plans.k_means(people=200, centroids=2, iterations=2, variant="hidden", sigma=0.2)
    >>> hidden.applies, len(hidden.refusals())
    (False, 1)
    >>> public = hs.plans.k_means(people=200, centroids=2, iterations=2, variant="public-centroids", sigma=0.2)
    >>> public.applies, len(public.reachable("people"))
    (True, 2)
    """
    if variant not in get_args(Variant):
        _checks.reject("variant", f"one of {', '.join(get_args(Variant))}", variant)
    if (noise is None) == (variant == "private-centroids"):
        _checks.reject("noise", "set if and only if centroids are private", noise)
    k, rounds = _checks.integer("centroids", centroids, low=2), _checks.integer("iterations", iterations, low=1)
    shown: dict[Variant, Carries] = {"private-centroids": "released", "public-centroids": "assumed public"}
    stage = Stage(
        sends=("assign",),
        nodes="update",
        targets=k,
        reads=(("people",),) * rounds,
        repeats=True,
        steered=True,
        carries=shown.get(variant, "hidden"),
        release=None if noise is None else noise.release(name="centroids", start="update"),
    )
    return staged(
        f"k-means, {k} centroids, {rounds} iteration{'s' if rounds > 1 else ''}, {variant.replace('-', ' ')}",
        data=(Data(name="people", items=people),),
        stages=(stage,),
        traffic=Traffic(**traffic),
        assumptions=(CENTROIDS_PUBLIC,) if variant == "public-centroids" else (),
    )

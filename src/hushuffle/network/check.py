"""Every node's own look at a run's document: do its steps keep what its plan promises?"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import NoReturn

from hushuffle.errors import DataError
from hushuffle.model import Guarantee, number
from hushuffle.network.nodes.document import RunDocument, Step
from hushuffle.plans import Plan, Traffic
from hushuffle.queries import PlanSpecification, parse_plan


@dataclass(frozen=True, kw_only=True)
class Promise:
    """The plan in a document whose steps keep it."""

    specification: PlanSpecification
    plan: Plan

    @cached_property
    def guarantee(self) -> Guarantee:
        """What the traffic of the whole plan tells about one person."""
        # Imported here: half a second that nodes of a plan without a target need not wait before they listen.
        from hushuffle.questions.traffic import plan_guarantee  # noqa: PLC0415

        return plan_guarantee(self.plan, delta=self.specification.targets.delta)


def check_promise(document: RunDocument) -> Promise:
    """Return the plan in a document; refuse a document whose steps or query are not those of its plan.

    The guarantee is that of the plan's text, which people read; what nodes do is said by the steps. A node takes part,
    whatever its role, only where both are one, and where the plan reaches the epsilon that it asks for itself.

    Raises:
        DataError: they differ, the plan's traffic has no guarantee or misses `targets.epsilon`, or a batch has too few
            different holders.
        SpecificationError: the plan in the document is none.
    """
    specification = parse_plan(document.plan, file="the plan in the run's document")
    plan = specification.plan(document.people)
    if not plan.applies:
        _refuse("its plan has no guarantee")
    clusters = [cluster for cluster in plan.clusters if cluster.reads]
    if len(clusters) != len(document.steps):
        _refuse(f"its plan has {len(clusters)} steps, the document {len(document.steps)}")
    for cluster, step in zip(clusters, document.steps, strict=True):
        scramblers = len(step.batches) if step.scrambled else 0
        sizes = {
            "sources": (cluster.sources, step.sources),
            "targets": (cluster.targets, len(step.computes)),
            "scramblers": (cluster.scramblers, scramblers),
        }
        pairs = zip(asdict(Traffic.of(cluster)).items(), asdict(step.traffic).values(), strict=True)
        traffic = {name: (promised, asked) for (name, promised), asked in pairs}
        luck = {"only_on_purpose": (plan.coins_known(cluster), step.only_on_purpose)}
        different = [name for name, (promised, asked) in (sizes | traffic | luck).items() if promised != asked]
        if different:
            _refuse(f"{', '.join(different)} of the step {step.name!r} are not those of its plan")
        _check_holders(step)
    if not specification.query.promises(document.query):
        _refuse("its query is not that of its plan")
    promise = Promise(specification=specification, plan=plan)
    wanted = specification.targets.epsilon
    if wanted is not None and promise.guarantee.upper > wanted:
        _refuse(f"{in_words(promise.guarantee)}, above its own targets.epsilon = {wanted:g}")
    return promise


def in_words(guarantee: Guarantee) -> str:
    """Return what a guarantee promises, for a refusal."""
    return f"epsilon is up to {number(guarantee.upper, up=True)} at delta = {guarantee.delta:g}"


def _check_holders(step: Step) -> None:
    """Refuse a batch in which fewer nodes than `min_batch` hold the places: somebody alone hides nobody."""
    fewest = min(len(set(batch.holders)) for batch in step.batches) if step.scrambled else step.min_batch
    if fewest < step.min_batch:
        _refuse(
            f"a batch of the step {step.name!r} has {fewest:,} different holders, fewer than its min_batch = "
            f"{step.min_batch:,} (the places of one node count once; a smaller traffic.min_batch would say so)"
        )


def _refuse(why: str) -> NoReturn:
    message = f"the run's document does not keep what its plan promises: {why}. Nothing is sent for it."
    raise DataError(message)

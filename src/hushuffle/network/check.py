"""Every node's own look at a run's document: what its plan promises, what the owner of a source demands and gives."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import NoReturn

from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256

from hushuffle.errors import DataError
from hushuffle.files.secret_keys import derived
from hushuffle.model import Guarantee, number
from hushuffle.network.nodes.document import RunDocument, Step
from hushuffle.network.nodes.identities import Identity
from hushuffle.network.nodes.source import Person
from hushuffle.network.odometer import Odometer, Spending
from hushuffle.network.specification import Policy
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
            "batches": (cluster.scramblers, scramblers),
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


def check_policy(policy: Policy, promise: Promise, document: RunDocument, identity: Identity) -> None:
    """Refuse a run that asks for more than the owner of a source gives."""
    name, guarantee = identity.name, promise.guarantee
    if guarantee.upper > policy.max_epsilon:
        _decline(name, f"{in_words(guarantee)}, above max_epsilon = {policy.max_epsilon:g}")
    if guarantee.delta > policy.max_delta:
        _decline(name, f"delta is {guarantee.delta:g}, above max_delta = {policy.max_delta:g}")
    for step in document.steps:
        batches = [batch for batch in step.batches if name in batch.holders]
        least = step.min_batch if step.scrambled else 1
        if batches and least < policy.min_batch:
            what = f"may be released with {least:,} sources" if step.scrambled else "has no scrambler"
            _decline(name, f"the step {step.name!r} {what}, min_batch is {policy.min_batch:,}")
        fewest = min((len(set(batch.holders)) if step.scrambled else 1 for batch in batches), default=None)
        if fewest is not None and fewest < policy.min_distinct_holders:
            wanted = f"min_distinct_holders is {policy.min_distinct_holders:,}"
            _decline(name, f"its batch in the step {step.name!r} has {fewest:,} different holders, {wanted}")
    _check_authority(policy, identity)


def _check_authority(policy: Policy, identity: Identity) -> None:
    if policy.authorities is None:
        return
    try:
        certificates = x509.load_pem_x509_certificates(identity.authority.encode())
    except Exception:  # noqa: BLE001 - of an unknown version, damaged: each raises something else
        _decline(identity.name, "its authority.pem holds no certificate")
    unknown = [one for one in map(_fingerprint, certificates) if one not in policy.authorities]
    if unknown:
        _decline(identity.name, f"the authority with the fingerprint {unknown[0]} is not among authorities")


def _fingerprint(certificate: x509.Certificate) -> str:
    return certificate.fingerprint(SHA256()).hex()


def spend(
    policy: Policy, promise: Promise, document: RunDocument, held: Sequence[Person], *, key: bytes, state: Path
) -> None:
    """Note what a run costs the records of a key before anything is sent, or refuse it.

    The figures of all runs are added up, which holds for whatever the runs are. A run that is started again costs
    nothing more, if it is the same document and the same records.

    `policy`: its `budget` bounds the sum of epsilons, its `max_delta` that of deltas.
    `key`: of their coins; the sums are those of the key.
    `state`: where sources keep what they sent: a key that has sent and has no record of it is refused.
    """
    odometer = Odometer.of(key)
    if not any(state.glob("*.messages")):
        odometer.begin()
    spending = Spending(
        run=document.run,
        epsilon=promise.guarantee.upper,
        delta=promise.guarantee.delta,
        use=derived(key, f"use {document.digest.hex()} {_digest(held)}").hex(),
    )
    odometer.spend(spending, max_epsilon=policy.budget, max_delta=policy.max_delta)


def _digest(held: Sequence[Person]) -> str:
    """Return a digest of records; only what is made of it with a key is ever written."""
    whole = hashlib.sha256()
    for one in held:
        whole.update(repr((one.record, sorted(one.places.items()), one.row.tolist())).encode())
    return whole.hexdigest()


def _decline(name: str, why: str) -> NoReturn:
    message = f"{name} takes no part: {why}. That is the [policy] of its configuration. Nothing was sent."
    raise DataError(message) from None

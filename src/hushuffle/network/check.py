"""Check a run's document, as each node does, against the plan's guarantee and the policy of a source's owner."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import NoReturn

from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256

from hushuffle._checks import fail
from hushuffle.files.secret_keys import derived
from hushuffle.model import Guarantee, number
from hushuffle.network.nodes.document import RunDocument
from hushuffle.network.nodes.identities import Identity
from hushuffle.network.nodes.source import Person
from hushuffle.network.odometer import Odometer, Spending
from hushuffle.network.specification import Policy
from hushuffle.plans import Plan, Traffic
from hushuffle.queries import PlanSpecification, parse_plan


@dataclass(frozen=True, kw_only=True)
class Promise:
    """The plan in a run's document, after a check that the document's steps agree with the plan."""

    specification: PlanSpecification
    plan: Plan

    @cached_property
    def guarantee(self) -> Guarantee:
        """The guarantee for one person against an observer of all traffic."""
        # Imported here: the import takes half a second, which nodes of a plan without a target epsilon do not need.
        from hushuffle.questions.traffic import plan_guarantee  # noqa: PLC0415

        return plan_guarantee(self.plan, delta=self.specification.targets.delta)


def check_promise(document: RunDocument) -> Promise:
    """Refuse a document whose steps or query differ from its plan, or whose plan misses its `targets.epsilon`.

    The guarantee holds for the text of the plan, whereas nodes follow the steps.
    """
    specification = parse_plan(document.plan, file="the plan in the run's document")
    plan = specification.plan(document.people)
    if not plan.applies:
        _refuse("the traffic of the plan has no guarantee")
    clusters = [cluster for cluster in plan.clusters if cluster.reads]
    if len(clusters) != len(document.steps):
        _refuse(f"the plan has {len(clusters)} steps, but the document has {len(document.steps)}")
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
            _refuse(f"{', '.join(different)} of the step {step.name!r} differ from the plan")
        fewest = min(len(set(batch.holders)) for batch in step.batches) if step.scrambled else step.min_batch
        if fewest < step.min_batch:
            _refuse(
                f"a batch of the step {step.name!r} has {fewest:,} different holders, fewer than its min_batch = "
                f"{step.min_batch:,} (several places of one node count once). Lower traffic.min_batch, or add holders"
            )
    if not specification.query.promises(document.query):
        _refuse("the query of the document differs from that of the plan")
    promise = Promise(specification=specification, plan=plan)
    wanted = specification.targets.epsilon
    if wanted is not None and promise.guarantee.upper > wanted:
        _refuse(f"{in_words(promise.guarantee)}, above targets.epsilon = {wanted:g}")
    return promise


def in_words(guarantee: Guarantee) -> str:
    return f"epsilon is up to {number(guarantee.upper, up=True)} at delta = {guarantee.delta:g}"


def _refuse(why: str) -> NoReturn:
    fail(f"the run's document does not match its plan: {why}. Nothing was sent for this run.")


def check_policy(policy: Policy, promise: Promise, document: RunDocument, identity: Identity) -> None:
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
            held = f"the batch of this node in the step {step.name!r} has {fewest:,} different holders"
            _decline(name, f"{held}, min_distinct_holders is {policy.min_distinct_holders:,}")
    _check_authority(policy, identity)


def _check_authority(policy: Policy, identity: Identity) -> None:
    if policy.authorities is None:
        return
    try:
        certificates = x509.load_pem_x509_certificates(identity.authority.encode())
    except Exception:  # noqa: BLE001 - each fault raises another exception
        _decline(identity.name, "authority.pem contains no certificate")
    fingerprints = [certificate.fingerprint(SHA256()).hex() for certificate in certificates]
    unknown = [fingerprint for fingerprint in fingerprints if fingerprint not in policy.authorities]
    if unknown:
        _decline(identity.name, f"the authority with the fingerprint {unknown[0]} is not in the list authorities")


def spend(
    policy: Policy, promise: Promise, document: RunDocument, held: Sequence[Person], *, key: bytes, state: Path
) -> None:
    """Record a run's privacy loss, summed over the runs of `key`, before anything is sent; a restart costs nothing.

    A key that has sent messages (stored in `state`) but has no record is refused.
    """
    odometer = Odometer.of(key)
    if not any(state.glob("*.messages")):
        odometer.begin()
    whole = hashlib.sha256()  # only a value that is derived from this digest with the key is ever written
    for person in held:
        whole.update(repr((person.record, sorted(person.places.items()), person.row.tolist())).encode())
    epsilon, delta = promise.guarantee.upper, promise.guarantee.delta
    use = derived(key, f"use {document.digest.hex()} {whole.hexdigest()}").hex()
    spending = Spending(run=document.run, epsilon=epsilon, delta=delta, use=use)
    odometer.spend(spending, max_epsilon=policy.budget, max_delta=policy.max_delta)


def _decline(name: str, why: str) -> NoReturn:
    fail(
        f"{name} does not take part in the run: {why}. The limit is in [policy] of this node's configuration. "
        "Nothing was sent."
    )

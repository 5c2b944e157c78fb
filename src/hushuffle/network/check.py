"""Check a run's document, as each node does, against the plan's guarantee, its owner's policy, and earlier losses."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NoReturn, Self

from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256

from hushuffle import _checks
from hushuffle._checks import fail
from hushuffle.files.causes import failing
from hushuffle.files.secret_keys import damaged, derived, key_folder, locked, read_memory, write_memory
from hushuffle.model import Guarantee, number
from hushuffle.network.nodes.document import RunDocument
from hushuffle.network.nodes.identities import Identity
from hushuffle.network.nodes.source import Person
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


_CONTENT: Final = "odometer"


@dataclass(frozen=True, kw_only=True)
class Spending:
    """The privacy loss (epsilon, delta) of one run for each person, with epsilon in nats.

    `use`: a keyed digest of content, recipients and mechanism; a run may be repeated only for the same use, and an
    empty `use` allows no comparison.
    """

    run: str
    epsilon: float
    delta: float = 0.0
    use: str = ""

    def __post_init__(self) -> None:
        if self.epsilon != math.inf:
            _checks.non_negative("epsilon", self.epsilon)
        _checks.probability("delta", self.delta)


@dataclass(frozen=True, kw_only=True)
class Odometer:
    """The recorded privacy losses of a key, in a private `folder`: losses add up, and no loss is ever removed.

    A key without a record may not be used, since its privacy loss is unknown. Several processes may share a record.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     odometer = Odometer(folder=Path(folder))
    ...     odometer.begin()
    ...     odometer.spend(Spending(run="monday", epsilon=0.5), max_epsilon=1.0)
    ...     odometer.spend(Spending(run="monday", epsilon=0.5), max_epsilon=1.0)  # the same run: spent before
    ...     odometer.total()
    True
    True
    False
    (0.5, 0.0)
    """

    folder: Path

    @classmethod
    def of(cls, key: bytes) -> Self:
        return cls(folder=key_folder(key))

    def begin(self) -> bool:
        """Begin an empty record, for a key that was never used; return False if the key already has a record."""
        with locked(self.folder):
            if self._read() is not None:
                return False
            self._write(())
            return True

    def spendings(self) -> tuple[Spending, ...]:
        spendings = self._read()
        if spendings is None:
            fail(
                f"{self._path} is missing, so the privacy loss of this key is unknown. Restore it, or create a new "
                "key. If the key was never used, create its record."
            )
        return spendings

    def total(self) -> tuple[float, float]:
        """Return the sums of epsilon and of delta, which bound the privacy loss of all runs together."""
        epsilon, delta = _sums(self.spendings())
        return float(epsilon), float(delta)

    def spend(self, spending: Spending, *, max_epsilon: float = math.inf, max_delta: float = 1.0) -> bool:
        """Record a run before any of its messages is sent; return False if the same run is already on record."""
        with locked(self.folder):
            before = self.spendings()
            for earlier in before:
                if earlier == spending:
                    return False
                if earlier.run == spending.run:
                    fail(
                        f"Run {spending.run} is already on record with other figures or other records. Reusing its "
                        "randomness would reveal values, so nothing was sent. Give the run a new name or a new key."
                    )
            epsilon, delta = _sums((*before, spending))
            if epsilon > _decimal(max_epsilon) or delta > _decimal(max_delta):
                spent = _sums(before)
                fail(
                    f"Run {spending.run} would spend epsilon {spending.epsilon:g} and delta {spending.delta:g}. "
                    f"Epsilon {float(spent[0]):g} and delta {float(spent[1]):g} are spent, of a budget of epsilon "
                    f"{max_epsilon:g} and delta {max_delta:g}. Nothing was sent."
                )
            self._write((*before, spending))
            return True

    @property
    def _path(self) -> Path:
        return self.folder / "odometer.json"

    def _read(self) -> tuple[Spending, ...] | None:
        document = read_memory(self._path, _CONTENT)
        if document is None:
            return None
        try:
            return tuple(_spending(**entry) for entry in document["spendings"])
        except (KeyError, TypeError, ValueError):
            damaged(self._path)

    def _write(self, spendings: tuple[Spending, ...]) -> None:
        plain = [{**asdict(each), "epsilon": repr(each.epsilon), "delta": repr(each.delta)} for each in spendings]
        with failing(f"{self._path} cannot be written", then=" Nothing was sent."):
            write_memory(self._path, _CONTENT, {"spendings": plain})


def _spending(*, run: Any, epsilon: Any, delta: Any, use: Any) -> Spending:
    if not all(isinstance(text, str) for text in (run, epsilon, delta, use)):
        raise TypeError
    return Spending(run=run, epsilon=float(epsilon), delta=float(delta), use=use)


def _sums(spendings: tuple[Spending, ...]) -> tuple[Decimal, Decimal]:
    """Return the exact sums of epsilon and of delta as decimal numbers, in which 0.1 + 0.1 + 0.1 is 0.3."""
    zero = Decimal(0)
    return (
        sum((_decimal(each.epsilon) for each in spendings), zero),
        sum((_decimal(each.delta) for each in spendings), zero),
    )


def _decimal(value: float) -> Decimal:
    return Decimal(repr(float(value)))

"""Collect: read private columns of the same people, randomize and shuffle each, release all of it or nothing.

One column is a collection of one column. Columns are shuffled independently, so that no row joins another; what all of
them say together is added up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final, NoReturn

from hushuffle._checks import fail
from hushuffle.collection import spark
from hushuffle.collection.budget import Entry, Part, Spent, refuse_used_up
from hushuffle.collection.budget import opened as opened_budget
from hushuffle.collection.engines.kernel import Kernel
from hushuffle.collection.engines.local import MEMORY
from hushuffle.collection.engines.spark_session import started
from hushuffle.collection.kept import kept_rounds, refuse_unkept
from hushuffle.collection.ledger import Candidate, opened
from hushuffle.collection.release import Release, batches_of, release
from hushuffle.collection.released import ColumnsManifest, Manifest
from hushuffle.collection.request import MANIFEST, Asked, KeyRounds, Keys, Request, rounds_of
from hushuffle.errors import DataError
from hushuffle.files.private_files import publish, workplace
from hushuffle.model import Bound, Progress, json_number
from hushuffle.numerics.exact import sum_upwards, times_upwards
from hushuffle.questions import dp
from hushuffle.specification import Collection, Specification
from hushuffle.specification.population import ONE_ROW
from hushuffle.tables.private import WrongRecords

_RELATION: Final = "replace one person's values in all columns; in which columns they are missing stays as it is"


@dataclass(frozen=True, kw_only=True)
class Collected:
    """What was released of each column, by name ("" where there is one), and what all of them say together.

    `manifest` and `files` are those of all columns. `rounds` is what everything that was collected with this key says
    together; None: without a key. `spent` is what a budget says afterwards; None: without one. `total` is what all
    columns say in all rounds that the specification announces, if these are several.
    """

    columns: Mapping[str, Release]
    manifest: Manifest | ColumnsManifest
    central: Bound
    local_epsilon: float
    files: tuple[Path, ...]
    rounds: KeyRounds | None = None
    spent: Spent | None = None
    total: Bound | None = None

    @property
    def several(self) -> bool:
        """Whether each column has a folder."""
        return "" not in self.columns

    @property
    def dropped(self) -> int:
        """Number of answers that were missing (this is not released)."""
        return sum(column.dropped for column in self.columns.values())

    @property
    def repeated(self) -> bool:
        """Whether the key had given all of these reports before."""
        return all(column.repeated for column in self.columns.values())


def collect(
    specification: Specification,
    *,
    out: Path,
    sources: Sequence[str] = (),
    column: str | None = None,
    keys: Keys | None = None,
    min_batch: int = 1,
    base_folder: Path = Path(),
    memory: int = MEMORY,
    reference: Path | None = None,
    progress: Progress | None = None,
    master: str | None = None,
    budget: Path | None = None,
) -> Collected:
    """Run a collection on the people in files, and write `reports.parquet` and `manifest.json` into the folder `out`.

    Where only sums leave, `sums.json` is written instead of the reports.

    The folder appears when both are whole, or not at all. What is in it depends on nothing but the multiset of the
    reports, their number, the specification, and the coins of the shuffle (with a Mallows shuffle: on the reports in
    the order in which it releases them).

    Args:
        specification: the deployment; its n, if it has one, is replaced by the number of people there are.
        out: a folder that is not there yet, or empty.
        sources: files, folders, globs, relative to the current folder; the data of the specification if none.
        column: the private column, where the specification has no data: labels, or the codes 0..k-1.
        keys: None: every report has fresh cryptographic coins.
        min_batch: fewer people are refused.
        base_folder: the folder of the specification.
        memory: bytes of reports to hold before they are spilled to the disk beside `out`.
        reference: with a Mallows shuffle, a file with its public order (`load_reference`); None: it is computed.
        progress: told what is going on.
        master: the address of a Spark cluster, whose files `sources` are then; None: this machine alone.
        budget: a TOML file with epsilon and delta: all that was collected with it, and this, as rounds with the same
            people, must not exceed it. What is released is added to the file.

    Raises:
        DataError: data, key, ledger, reference, budget or folder cannot be used; fewer people than `min_batch`
            (`TooFewPeople`), or too few for targets.epsilon or for the budget; a local epsilon above
            targets.local_epsilon.
        SpecificationError: the population has no column to read.
        UnsupportedProtocolError: the shuffler does not hide who sent what, or reports have no columns.
    """
    request = Request(
        sources=sources,
        column=column,
        keys=keys,
        min_batch=min_batch,
        base_folder=base_folder,
        memory=memory,
        reference=reference,
        progress=progress,
        master=master,
        budget=budget,
    )
    return run(Collection.of(specification), out=out, request=request)


def run(collection: Collection, *, out: Path, request: Request) -> Collected:
    """Do what `collect` does for a collection of any number of columns, with its options in one value.

    Several columns get a folder each, and a manifest of all beside them. They are read one after the other (of a
    Parquet file nothing else is read). With a key the coins of each come from a key of its own. Where missing answers
    are dropped, columns have different numbers of people.
    """
    refuse_unkept(collection.whole, request)
    if request.budget is not None:
        refuse_used_up(request.budget)  # before the work
    with workplace(out) as place:
        made = prepare(collection, request, place)
        with charged(made, request) as (spent, note):
            made = made.admitted(request)
            note()
            publish(made.folder, out)
    request.tell("done", 1.0)
    return replace(made, spent=spent).collected(out)


@contextmanager
def charged(made: Prepared, request: Request) -> Iterator[tuple[Spent | None, Callable[[], None]]]:
    """Hold the budget, if there is one: give what is used with these releases, and what notes them there.

    Raises:
        DataError: it is more than there is.
    """
    if request.budget is None:
        yield None, lambda: None
        return
    parts = [Part(specification=one.manifest.specification, reports=one.protocol.n) for one in made.releases.values()]
    coins = [one.entries.digest for one in made.releases.values() if one.entries is not None]
    entry = Entry.now(parts, coins=coins)
    with opened_budget(request.budget) as budget:
        request.tell("the guarantee of all collections in the budget", 1.0)
        spent, new = budget.with_entry(entry)
        yield spent, partial(budget.note, entry, spent) if new else lambda: None


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """The releases of all columns in a `folder` that nobody has seen yet, and their guarantee."""

    releases: Mapping[str, Release]
    manifest: Manifest | ColumnsManifest
    central: Bound
    folder: Path
    rounds: KeyRounds | None = None
    spent: Spent | None = None
    total: Bound | None = None

    def admitted(self, request: Request) -> Prepared:
        """Write all columns into the ledger of the key, all or none; what its rounds add up to goes beside them.

        Coins that would be used again are refused: nothing may leave. Without a key nothing is done.
        """
        if request.keys is None:
            return self
        candidates = [_candidate(made) for made in self.releases.values()]
        key = next(iter(self.releases.values())).key
        assert key is not None
        with opened(key, request.keys.file) as ledger:
            fresh = ledger.check(candidates)
            new = [candidate for candidate, is_new in zip(candidates, fresh, strict=True) if is_new]
            request.tell("the guarantee of all rounds with this key", 1.0)
            known, manifest = (*ledger.batches, *(candidate.batch for candidate in new)), self.manifest
            if candidates[0].batch.deployment is None:
                rounds = rounds_of(known, delta=float(manifest.facts["central"]["delta"]))
                manifest = replace(manifest, facts={**manifest.facts, "key": rounds.facts()})
                (self.folder / MANIFEST).write_text(manifest.text(), encoding="utf-8")
            else:  # how many people stayed is written nowhere
                (made,) = self.releases.values()
                rounds = kept_rounds(made, ledger.kept(candidates[0]), len({batch.scope for batch in known}))
            if new:
                ledger.admit(new)
        releases = {
            name: replace(made, repeated=not is_new)
            for (name, made), is_new in zip(self.releases.items(), fresh, strict=True)
        }
        return replace(self, releases=releases, manifest=manifest, rounds=rounds)

    def collected(self, out: Path) -> Collected:
        """Return what was released at `out`."""
        columns = {
            name: replace(made, entries=None, key=None, files=(out / name / made.content, out / name / MANIFEST))
            for name, made in self.releases.items()
        }
        files = [file for made in columns.values() for file in made.files]
        return Collected(
            columns=columns,
            manifest=self.manifest,
            central=self.central,
            local_epsilon=_local(self.releases),
            files=tuple(dict.fromkeys([*files, out / MANIFEST])),
            rounds=self.rounds,
            spent=self.spent,
            total=self.total,
        )


def _candidate(made: Release) -> Candidate:
    assert made.entries is not None
    return Candidate(
        entries=made.entries, shuffler=repr(made.protocol.shuffler), specification=made.manifest.specification
    )


def prepare(collection: Collection, request: Request, place: Path) -> Prepared:
    """Write the releases of all columns, and their manifest, into a new folder inside the private folder `place`."""
    if request.column is not None and collection.several:
        fail("A column is named by specifications of one column without data only: this one has [[columns]].")
    _refuse_local(collection, request)
    folder = place / "release"
    folder.mkdir()
    with _engine(collection, request):
        made = _made(collection, request, place, folder)
    if not collection.several:
        (only,) = made.values()
        return Prepared(releases=made, manifest=only.manifest, central=only.central, folder=folder)
    request.tell("the guarantee of all columns", 1.0)
    central, total = _together(collection, made)
    manifest = _manifest(collection, made, central, total, request)
    (folder / MANIFEST).write_text(manifest.text(), encoding="utf-8")
    return Prepared(releases=made, manifest=manifest, central=central, total=total, folder=folder)


def _refuse_local(collection: Collection, request: Request) -> None:
    """Refuse more local epsilon of one person than the specification wants, in all columns and rounds."""
    wanted = collection.whole.targets.local_epsilon
    if wanted is None:
        return
    parts = []
    for one in collection.columns.values():
        k = Asked.of(one, request).answers.k
        times = one.reports_kept(k) or collection.rounds
        parts.append(times_upwards(one.randomizer.build(k).local_epsilon, one.population.most * times))
    total = sum_upwards(parts)
    if total > wanted:
        fail(
            f"The local epsilon of all that one person sends is {total:.4g}, above targets.local_epsilon = {wanted:g}: "
            "nothing was read. A smaller epsilon of [randomizer] helps, or fewer reports of each person."
        )


@contextmanager
def _engine(collection: Collection, request: Request) -> Iterator[None]:
    """Keep the session of Spark, if it is Spark that collects, for all columns; what it does not collect is refused."""
    if request.master is None or not collection.several:
        yield
        return
    for one in collection.columns.values():
        spark.check(one)
    request.tell("starting Spark", 0.0)
    with started(request.master):
        yield


def _made(collection: Collection, request: Request, place: Path, folder: Path) -> dict[str, Release]:
    """Return the release of each column, in a folder of its own inside `folder`."""
    made: dict[str, Release] = {}
    for position, (name, one) in enumerate(collection.columns.items()):
        spill, target = place / f"spill-{position}", folder / name
        spill.mkdir(mode=0o700)
        target.mkdir(exist_ok=True)
        part = _part(request, name, position, len(collection.columns))
        try:
            made[name] = release(one, part, name=name, spill=spill, target=target)
        except WrongRecords as error:
            _refuse_all(error, list(collection.columns.values())[position + 1 :], request, place)
    return made


def _refuse_all(error: WrongRecords, others: Sequence[Specification], request: Request, place: Path) -> NoReturn:
    """Say what is wrong with the records of one column, and with those of the others that have not been read."""
    messages = [str(error)]
    for position, specification in enumerate(others):
        asked = Asked.of(specification, request)
        try:
            if request.master is None:
                batches_of(asked).check()
            else:
                kernel = Kernel(randomizer=specification.randomizer.build(asked.answers.k))
                (place / f"check-{position}").mkdir(mode=0o700)
                spark.gathered(asked, kernel, replace(request, progress=None), place / f"check-{position}")
        except DataError as other:
            messages.append(str(other))
    raise WrongRecords("\n".join(messages)) from None


def _part(request: Request, name: str, position: int, columns: int) -> Request:
    """Return the request for one column, whose progress is its share of the whole."""
    tell = request.progress
    if tell is None or not name:
        return request
    return replace(request, progress=lambda what, share: tell(f"{name}: {what}", (position + share) / columns))


def _together(collection: Collection, made: Mapping[str, Release]) -> tuple[Bound, Bound | None]:
    """Return the central guarantee of all columns, if it, or that of all rounds, is what was wanted; and the latter."""
    central, total = dp.compose([one.protocol for one in made.values()], delta=collection.delta), None
    if collection.rounds > 1:
        total = dp.compose([(one.protocol, collection.rounds) for one in made.values()], delta=collection.delta)
    together = total or central
    if collection.epsilon is not None and together.upper > collection.epsilon:
        rounds = "" if collection.rounds == 1 else f" in all {collection.rounds:,} rounds"
        fail(
            f"The central epsilon of all columns together{rounds} is up to {together.upper:.4g} at delta = "
            f"{collection.delta:g}, above targets.epsilon = {collection.epsilon:g}: nothing leaves. More people "
            "help, smaller local epsilons, or fewer columns."
        )
    return central, total


def _manifest(
    collection: Collection, made: Mapping[str, Release], central: Bound, total: Bound | None, request: Request
) -> ColumnsManifest:
    """Return what may be known of all columns."""
    facts = {
        **({} if collection.title is None else {"title": collection.title}),
        "local_epsilon": json_number(_local(made)),
        "central": {
            "epsilon": central.as_dict(),
            "delta": collection.delta,
            "relation": _RELATION,
            "per": "person",
            "assumed": ONE_ROW,
            **({} if total is None else {"rounds": {"times": collection.rounds, "epsilon": total.as_dict()}}),
        },
        "coins": "secure" if request.keys is None else f"keyed, round {request.keys.round}",
    }
    people = {name: (one.manifest.people, one.local_epsilon) for name, one in made.items()}
    return ColumnsManifest(columns=people, facts=facts)


def _local(made: Mapping[str, Release]) -> float:
    """Return the sum of the local epsilons, rounded up."""
    return sum_upwards(one.local_epsilon for one in made.values())

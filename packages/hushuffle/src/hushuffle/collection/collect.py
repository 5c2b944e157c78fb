"""Collect private columns of the same people: read, randomize and shuffle each column; release all of them or none.

Columns are shuffled independently, so that reports of one person are not linked; their guarantees are composed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NoReturn

from hushuffle._checks import fail
from hushuffle.collection import spark
from hushuffle.collection.budget import Part, Spent, charged, refuse_used_up
from hushuffle.collection.engines.kernel import Kernel
from hushuffle.collection.engines.local import MEMORY
from hushuffle.collection.engines.spark_session import started
from hushuffle.collection.kept import FreshReports, KeyRounds, kept_rounds
from hushuffle.collection.ledger import Candidate, opened
from hushuffle.collection.release import Release, batches_of, release
from hushuffle.collection.released import ColumnsManifest, Manifest
from hushuffle.collection.request import MANIFEST, Asked, Keys, Request, part_of, rounds_of
from hushuffle.errors import DataError
from hushuffle.files.private_files import publish, workplace, write_private
from hushuffle.model import Bound, Progress, json_number
from hushuffle.numerics.exact import sum_upwards, times_upwards
from hushuffle.questions import dp
from hushuffle.specification import Collection, Specification, parse
from hushuffle.specification.exposure import Exposure
from hushuffle.specification.population import ONE_ROW
from hushuffle.tables.refused import WrongRecords, refused_text

_RELATION: Final = "replace one person's values in all columns; in which columns they are missing stays as it is"


@dataclass(frozen=True, kw_only=True)
class Collected:
    """The releases of all columns, by column name ("" for a single column), and their joint guarantee.

    `rounds` is the joint guarantee of everything collected with this key (None: no key). `spent` is the used budget
    after this release (None: no budget). `total` is the guarantee of all rounds that the specification announces.
    `refused` is a private file with the line numbers of records that were set aside.
    """

    columns: Mapping[str, Release]
    manifest: Manifest | ColumnsManifest
    central: Bound
    local_epsilon: float
    files: tuple[Path, ...]
    rounds: KeyRounds | None = None
    spent: Spent | None = None
    total: Bound | None = None
    refused: Path | None = None

    @property
    def dropped(self) -> int:
        """Number of answers that were missing (this is not released)."""
        return sum(column.dropped for column in self.columns.values())

    @property
    def repeated(self) -> bool:
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

    Where only sums are released, `sums.json` is written instead of the reports.

    The folder appears when both files are complete, or not at all. Its content depends only on the multiset of the
    reports, their number, the specification, and the randomness of the shuffle (with a Mallows shuffle: on the reports
    in the order of their release).

    The actual number of people replaces n of the specification. `keys` None: every report has fresh cryptographic
    randomness. `memory`: maximum bytes of reports in memory; more are written to the disk beside `out`. `budget`: a
    TOML file; the joint guarantee of its collections and this one, as rounds with the same people, must not exceed it.
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
    """Read several columns one after the other, each into its own folder, with randomness from a derived key."""
    FreshReports.of(collection.whole).check(None if request.keys is None else request.keys.ids, request.budget)
    refuse_used_up(request.budget)
    with workplace(out) as place:
        prepared = prepare(collection, request, place)
        with prepared.charged(request) as (spent, note):
            prepared = prepared.admitted(request)
            refused = prepared.set_aside(out.with_name(f"{out.name}.refused.csv"))
            note()
            publish(prepared.folder, out)
    request.tell("done", 1.0)
    return replace(prepared, spent=spent).collected(out, refused=refused)


@dataclass(frozen=True, kw_only=True)
class Prepared:
    releases: Mapping[str, Release]
    manifest: Manifest | ColumnsManifest
    central: Bound
    folder: Path
    rounds: KeyRounds | None = None
    spent: Spent | None = None
    total: Bound | None = None

    def charged(self, request: Request) -> AbstractContextManager[tuple[Spent | None, Callable[[], None]]]:
        """Lock the budget, if any, and charge it with these releases: see `budget.charged`."""
        releases = self.releases.values()
        if request.budget is not None:
            request.tell("the guarantee of all collections in the budget", 1.0)
        parts = [Part(specification=one.manifest.specification, reports=one.protocol.n) for one in releases]
        return charged(request.budget, parts, [one.entries.digest for one in releases if one.entries is not None])

    def admitted(self, request: Request) -> Prepared:
        """Enter all columns into the ledger, or none; reused randomness is an error before anything is released."""
        if request.keys is None:
            return self
        candidates = [_candidate(made) for made in self.releases.values()]
        key = next(iter(self.releases.values())).key
        assert key is not None
        with opened(key, request.keys.file) as ledger:
            fresh = ledger.check(candidates)
            new = [candidate for candidate, is_new in zip(candidates, fresh, strict=True) if is_new]
            request.tell("the guarantee of all rounds with this key", 1.0)
            batches, manifest = (*ledger.batches, *(candidate.batch for candidate in new)), self.manifest
            if candidates[0].batch.deployment is None:
                rounds = rounds_of(batches, delta=float(manifest.facts["central"]["delta"]))
                manifest = replace(manifest, facts={**manifest.facts, "key": rounds.facts()})
                (self.folder / MANIFEST).write_text(manifest.text(), encoding="utf-8")
            else:  # the number of people that are left is written nowhere
                (release,) = self.releases.values()
                specification, number = parse(release.manifest.specification), len({batch.scope for batch in batches})
                rounds = kept_rounds(specification, release.protocol, ledger.kept(candidates[0]), number)
            if new:
                ledger.admit(new)
        releases = {
            name: replace(release, repeated=not is_new)
            for (name, release), is_new in zip(self.releases.items(), fresh, strict=True)
        }
        return replace(self, releases=releases, manifest=manifest, rounds=rounds)

    def set_aside(self, file: Path) -> Path | None:
        """Write the line numbers of unusable records to the private `file` and return it; None if there are none."""
        refused = [made.refused for made in self.releases.values() if made.refused is not None and made.refused.count]
        if not refused:
            return None
        write_private(file, refused_text(line for each in refused for line in each.lines()).encode())
        return file

    def collected(self, out: Path, *, refused: Path | None = None) -> Collected:
        columns = {
            name: replace(release, entries=None, key=None, files=(out / name / release.content, out / name / MANIFEST))
            for name, release in self.releases.items()
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
            refused=refused,
        )


def _candidate(release: Release) -> Candidate:
    assert release.entries is not None
    return Candidate(
        entries=release.entries, shuffler=repr(release.protocol.shuffler), specification=release.manifest.specification
    )


def prepare(collection: Collection, request: Request, place: Path) -> Prepared:
    collection.check_column(request.column)
    _refuse_local(collection, request)
    folder = place / "release"
    folder.mkdir()
    with _engine(collection, request):
        releases = _made(collection, request, place, folder)
    if "" in releases:
        (only,) = releases.values()
        return Prepared(releases=releases, manifest=only.manifest, central=only.central, folder=folder)
    request.tell("the guarantee of all columns", 1.0)
    central, total = _together(collection, releases)
    manifest = _manifest(collection, releases, central, total, request)
    (folder / MANIFEST).write_text(manifest.text(), encoding="utf-8")
    return Prepared(releases=releases, manifest=manifest, central=central, total=total, folder=folder)


def _refuse_local(collection: Collection, request: Request) -> None:
    """Raise an error if the local epsilon per person, over all columns and rounds, exceeds targets.local_epsilon."""
    wanted = collection.whole.targets.local_epsilon
    if wanted is None:
        return
    parts = []
    for column in collection.columns.values():
        k = Asked.of(column, request).answers.k
        parts.append(times_upwards(column.randomizer.build(k).local_epsilon, Exposure.of(column, k=k).total))
    total = sum_upwards(parts)
    if total > wanted:
        fail(
            f"The local epsilon of all reports of one person is {total:.4g}, above targets.local_epsilon = {wanted:g}: "
            "no data were read. Choose a smaller epsilon of [randomizer], or fewer reports per person."
        )


@contextmanager
def _engine(collection: Collection, request: Request) -> Iterator[None]:
    """Keep one Spark session for several columns; raise an error if Spark cannot run the collection."""
    if request.master is None or len(collection.columns) == 1:
        yield
        return
    for column in collection.columns.values():
        spark.check(column)
    request.tell("starting Spark", 0.0)
    with started(request.master):
        yield


def _made(collection: Collection, request: Request, place: Path, folder: Path) -> dict[str, Release]:
    releases: dict[str, Release] = {}
    for position, (name, column) in enumerate(collection.columns.items()):
        spill, target = place / f"spill-{position}", folder / name
        spill.mkdir(mode=0o700)
        target.mkdir(exist_ok=True)
        part = replace(request, progress=part_of(request.progress, name, position, len(collection.columns)))
        try:
            releases[name] = release(column, part, name=name, spill=spill, target=target)
        except WrongRecords as error:
            _refuse_all(error, list(collection.columns.values())[position + 1 :], request, place)
    return releases


def _refuse_all(error: WrongRecords, others: Sequence[Specification], request: Request, place: Path) -> NoReturn:
    """Report the invalid records of one column, and those of the columns that have not been read."""
    messages = [str(error)]
    for position, specification in enumerate(others):
        selection = Asked.of(specification, request)
        try:
            if request.master is None:
                batches_of(selection).check()
            else:
                kernel = Kernel(randomizer=specification.randomizer.build(selection.answers.k))
                (place / f"check-{position}").mkdir(mode=0o700)
                spark.gathered(selection, kernel, replace(request, progress=None), place / f"check-{position}")
        except DataError as other:
            messages.append(str(other))
    raise WrongRecords("\n".join(messages)) from None


def _together(collection: Collection, releases: Mapping[str, Release]) -> tuple[Bound, Bound | None]:
    central, total = dp.compose([one.protocol for one in releases.values()], delta=collection.delta), None
    if collection.rounds > 1:
        total = dp.compose([(one.protocol, collection.rounds) for one in releases.values()], delta=collection.delta)
    together = total or central
    if collection.epsilon is not None and together.upper > collection.epsilon:
        rounds = "" if collection.rounds == 1 else f" in all {collection.rounds:,} rounds"
        fail(
            f"The central epsilon of all columns together{rounds} is up to {together.upper:.4g} at delta = "
            f"{collection.delta:g}, above targets.epsilon = {collection.epsilon:g}: nothing was released. Collect from "
            "more people, choose smaller local epsilons, or collect fewer columns."
        )
    return central, total


def _manifest(
    collection: Collection, releases: Mapping[str, Release], central: Bound, total: Bound | None, request: Request
) -> ColumnsManifest:
    facts = {
        **({} if collection.title is None else {"title": collection.title}),
        "local_epsilon": json_number(_local(releases)),
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
    people = {name: (one.manifest.people, one.local_epsilon) for name, one in releases.items()}
    return ColumnsManifest(columns=people, facts=facts)


def _local(releases: Mapping[str, Release]) -> float:
    """Return the sum of the local epsilons of all columns, rounded up."""
    return sum_upwards(one.local_epsilon for one in releases.values())
